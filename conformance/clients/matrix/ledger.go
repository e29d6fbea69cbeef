package matrix

import (
	"fmt"
	"slices"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// ledger knows what was produced and committed, and checks every event of a group's members against it: a partition has one owner at any
// instant, an owner begins at what is committed and reads on without a gap, and every record is the one that was produced.
type ledger struct {
	partitions int
	headers    bool            // whether records have one
	byItself   bool            // the client commits what it wants to, so that only the bounds of its commits are known
	produced   [][]int         // per partition, by offset: the numbers of the records
	owner      map[int]string  // per partition: the member that has it
	next       map[int]int64   // per owned partition that was read from: the offset that has to come next
	left       map[left]int64  // where a member was when it gave up a partition
	committed  map[int]int64   // per partition, 0 without a commit
	committing map[int]int64   // what the members are committing, if they are: a new owner may begin at either
	read       map[int]int64   // per partition: the end of what was read, by whomever
	again      int             // records that came once more, which is right only behind a position that nobody had committed
	members    map[string]bool // that were assigned something
}

// left is a partition and a member that had it. Some clients go on where they were when they get it back and nothing is committed, also when
// others had it in between (their offsets are kept for as long as the consumer is); others begin at the commit.
type left struct {
	partition int
	member    string
}

func newLedger(partitions int, headers, byItself bool) *ledger {
	return &ledger{
		partitions: partitions, headers: headers, byItself: byItself, produced: make([][]int, partitions), owner: map[int]string{}, next: map[int]int64{}, left: map[left]int64{}, committed: map[int]int64{},
		read: map[int]int64{}, members: map[string]bool{},
	}
}

// producing notes records from..from+count-1 as produced: a consumer may see them before the producer has its answer.
func (l *ledger) producing(from, count int) {
	for n := from; n < from+count; n++ {
		l.produced[n%l.partitions] = append(l.produced[n%l.partitions], n)
	}
}

// acknowledged compares the offsets that a client was told for records from..from+count-1, the last ones.
func (l *ledger) acknowledged(from, count int, acked [][3]int64) error {
	if len(acked) != count {
		return fmt.Errorf("%d records of %d are acknowledged", len(acked), count)
	}
	offsets := map[int]int64{}
	for _, numbers := range l.produced {
		for offset, n := range numbers {
			if n >= from {
				offsets[n] = int64(offset)
			}
		}
	}
	for _, a := range acked {
		n, p, offset := int(a[0]), int(a[1]), a[2]
		want, ok := offsets[n]
		if !ok {
			return fmt.Errorf("record %d is acknowledged twice, or was never produced", n)
		}
		if p != n%l.partitions || offset != want {
			return fmt.Errorf("record %d is acknowledged at partition %d offset %d, want partition %d offset %d", n, p, offset, n%l.partitions, want)
		}
		delete(offsets, n)
	}
	return nil
}

// event checks an event of a member.
func (l *ledger) event(member string, e wire.Line) error {
	switch e.Event {
	case "assigned":
		return l.assigned(member, e.Partitions, e.Owned)
	case "revoked":
		return l.revoked(member, e.Partitions, e.Owned)
	case "record":
		return l.record(member, e)
	case "closed":
		return fmt.Errorf("%s: the consumer ended by itself: %s", member, e.Error)
	}
	return nil
}

func (l *ledger) assigned(member string, partitions, owned []int) error {
	for _, p := range partitions {
		if p < 0 || p >= l.partitions {
			return fmt.Errorf("%s is assigned partition %d of %d", member, p, l.partitions)
		}
		if l.owner[p] != "" {
			return fmt.Errorf("partition %d is assigned to %s while %s has it", p, member, l.owner[p])
		}
		l.owner[p] = member
		delete(l.next, p)
	}
	l.members[member] = true
	return l.sameAs(member, owned)
}

func (l *ledger) revoked(member string, partitions, owned []int) error {
	for _, p := range partitions {
		if l.owner[p] != member {
			return fmt.Errorf("%s gives up partition %d, which it has not", member, p)
		}
		delete(l.owner, p)
		if next, reading := l.next[p]; reading {
			l.left[left{p, member}] = next
			delete(l.next, p)
		}
	}
	return l.sameAs(member, owned)
}

// sameAs compares a member's own account of what it has.
func (l *ledger) sameAs(member string, owned []int) error {
	want := l.ownedBy(member)
	got := slices.Sorted(slices.Values(owned))
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s says that it owns %v, its events say %v", member, got, want)
	}
	return nil
}

func (l *ledger) record(member string, e wire.Line) error {
	p := e.Partition
	if l.owner[p] != member {
		return fmt.Errorf("%s reads partition %d offset %d, which %q has", member, p, e.Offset, l.owner[p])
	}
	want, reading := l.next[p]
	if !reading {
		want = l.committed[p]
		own := l.byItself && e.Offset > want && e.Offset <= l.read[p]
		if before, ok := l.left[left{p, member}]; own || ok && before > want && e.Offset == before {
			want = e.Offset
		}
		if end, ok := l.committing[p]; ok && e.Offset == end {
			want = end
		}
	}
	if e.Offset != want {
		return fmt.Errorf("%s reads offset %d of partition %d, want %d (committed %d, read so far %d)", member, e.Offset, p, want, l.committed[p], l.read[p])
	}
	if e.Offset >= int64(len(l.produced[p])) {
		return fmt.Errorf("%s reads offset %d of partition %d, which ends at %d", member, e.Offset, p, len(l.produced[p]))
	}
	r := wire.RecordOf(l.produced[p][e.Offset], l.partitions)
	if !l.headers {
		r.Header = ""
	}
	if e.Key != r.Key || e.Value != r.Value || e.Header != r.Header {
		return fmt.Errorf("%s reads at partition %d offset %d: key %q, value %.40q, header %q; want key %q, value %.40q, header %q", member, p, e.Offset, e.Key, e.Value, e.Header, r.Key, r.Value, r.Header)
	}
	l.next[p] = e.Offset + 1
	if e.Offset < l.read[p] {
		l.again++
	}
	l.read[p] = max(l.read[p], e.Offset+1)
	return nil
}

// ownedBy is a member's assignment, sorted.
func (l *ledger) ownedBy(member string) (owned []int) {
	for p := range l.partitions {
		if l.owner[p] == member {
			owned = append(owned, p)
		}
	}
	return owned
}

// shared says whether n members have every partition, each as many as the others.
func (l *ledger) shared(n int) bool {
	count := map[string]int{}
	for _, m := range l.owner {
		count[m]++
	}
	for _, c := range count {
		if c != l.partitions/n {
			return false
		}
	}
	return len(l.owner) == l.partitions && len(count) == n
}

// allRead says whether everything that was produced was read, and by the owner of now up to the end.
func (l *ledger) allRead() bool {
	for p, numbers := range l.produced {
		next, reading := l.next[p]
		if !reading {
			next = max(l.committed[p], l.committing[p], l.left[left{p, l.owner[p]}])
			if l.byItself {
				next = l.read[p]
			}
		}
		if next != int64(len(numbers)) {
			return false
		}
	}
	return true
}

// ends are the offsets behind the last record of each partition.
func (l *ledger) ends() map[int]int64 {
	ends := map[int]int64{}
	for p, numbers := range l.produced {
		ends[p] = int64(len(numbers))
	}
	return ends
}
