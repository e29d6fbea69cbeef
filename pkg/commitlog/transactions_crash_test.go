package commitlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A txnClient is two transactional producers, 1 and 2, and the coordinator that
// ends their transactions. It notes what has been promised: the batches and markers that were flushed.
type txnClient struct {
	epochs    [3]int16
	sequences [3]int32
	promised  map[int64]uint32 // offset to checksum of what is durable
	written   map[int64]uint32 // of all that was appended
	open      map[int64]int64  // producer to the first offset of its transaction
	ending    *Marker          // the coordinator has decided, and has no answer yet
	start     int64            // of the log, as meta.db says
	err       error
}

// aMarker stands for the checksum of a control batch.
const aMarker = 0

func newTxnClient() *txnClient {
	return &txnClient{promised: map[int64]uint32{}, written: map[int64]uint32{}, open: map[int64]int64{}}
}

// step is a step of a workload: a and b are a transactional batch of producer 1 or 2; c and d
// commit theirs, x and y abort them, each flushed as a coordinator does; a dot is a plain batch; F flushes, R rolls, D
// deletes the first half and E all.
func (c *txnClient) step(t testing.TB, l *Log, what rune) bool {
	switch what {
	case 'a', 'b':
		id := int64(what-'a') + 1
		b := batch(t, spec{id: id, epoch: c.epochs[id], sequence: c.sequences[id], size: 120, txn: true})
		if c.put(l, b, func() (Appended, error) { return l.AppendVerified(b, producer.AddedByProduce) }) {
			c.sequences[id]++
		}
	case '.':
		b := batch(t, spec{size: 60})
		c.put(l, b, func() (Appended, error) { return l.Append(b) })
	case 'c', 'd', 'x', 'y':
		id := int64(1)
		if what == 'd' || what == 'y' {
			id = 2
		}
		m := &Marker{ProducerID: id, Epoch: c.epochs[id] + 1, Commit: what == 'c' || what == 'd', Bumped: true}
		// The participants are flushed before the coordinator decides.
		if c.flush(t, l); c.err == nil {
			c.ending = m
			c.mark(t, l, *m)
		}
	case 'F':
		c.flush(t, l)
	case 'R':
		c.err = l.Roll()
	case 'D', 'E':
		at := l.Offsets()
		offset := (at.LogStart + at.End) / 2
		if what == 'E' {
			offset = at.End
		}
		if offset, c.err = l.CheckStart(t.Context(), offset); c.err == nil {
			c.promise(offset)
			c.start = max(c.start, offset)
			c.err = l.MoveStart(offset)
		}
	}
	return c.err == nil
}

func (c *txnClient) put(l *Log, b record.Batch, appendIt func() (Appended, error)) bool {
	a, err := appendIt()
	if c.err = err; err != nil {
		return false
	}
	c.written[a.BaseOffset] = b.CRC()
	if _, ok := c.open[b.ProducerID()]; b.Transactional() && !ok {
		c.open[b.ProducerID()] = a.BaseOffset
	}
	return true
}

// mark has a marker written and flushed: the transaction is over.
func (c *txnClient) mark(t testing.TB, l *Log, m Marker) {
	a, err := l.AppendMarker(m)
	if err == nil && !m.Repeat {
		c.written[a.BaseOffset] = aMarker
	}
	if err == nil {
		err = l.AwaitFlushed(t.Context(), a.End)
	}
	if c.err = err; err != nil {
		return
	}
	if m.Repeat {
		return // a disk of one of several futures
	}
	c.promise(a.End)
	delete(c.open, m.ProducerID)
	c.epochs[m.ProducerID], c.sequences[m.ProducerID], c.ending = m.Epoch, 0, nil
}

func (c *txnClient) flush(t testing.TB, l *Log) {
	end := l.Offsets().End
	if c.err = l.AwaitFlushed(t.Context(), end); c.err == nil {
		c.promise(end)
	}
}

func (c *txnClient) promise(end int64) {
	for offset, crc := range c.written {
		if offset < end {
			c.promised[offset] = crc
		}
	}
}

func (c *txnClient) options(disk vfs.FS, epoch int32, clean bool) Options {
	o := testOptions(disk, epoch)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Clean, o.LogStart = 1000, 300, clean, c.start
	return o
}

// txnWorkload runs until something fails: transactions of two producers that overlap, span
// segments, a clean stop and a kill, and are deleted while they are open and after.
func txnWorkload(t testing.TB, disk vfs.FS, c *txnClient) error {
	var epoch int32
	for _, run := range []struct {
		steps string
		clean bool // the stop before it was
		stop  bool // in the end, in order
	}{
		{"a.bFaxb.y.a", false, true},
		{"a.Rbx.d.aab.", true, false},
		{"yRa..cFb.R..Db", false, true},
		{"yR.b.aEbR.x.d", true, false},
		{"a.bRyRa.x", false, true},
		{"abER", true, false}, // all of the open transactions is deleted
		{".a.F", false, true},
		{"x.y", true, true},
	} {
		epoch++
		l, err := Open(c.options(disk, epoch, run.clean))
		if err != nil {
			return err
		}
		for _, what := range run.steps {
			if !c.step(t, l, what) {
				l.Abandon()
				return c.err
			}
		}
		if !run.stop {
			l.Abandon() // the process is killed
			continue
		}
		end := l.Offsets().End
		if err := l.Close(); err != nil {
			return err
		}
		c.promise(end)
	}
	return nil
}

// checkTransactions opens the log and wants all that was promised; of the transactions a read-committed
// consumer sees what the batches say; and the coordinator's recovery ends what was being ended, once.
func (c txnClient) checkTransactions(t testing.TB, disk vfs.FS, what string) {
	t.Helper()
	l, err := Open(c.options(disk, 9, false))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Abandon()
	at, found := l.Offsets(), map[int64]uint32{}
	all := contents(t, l)
	for _, b := range all {
		found[b.BaseOffset()] = b.CRC()
		if b.Control() {
			found[b.BaseOffset()] = aMarker
		}
	}
	for offset, crc := range c.promised {
		if got, ok := found[offset]; offset >= at.LogStart && (!ok || got != crc) {
			t.Fatalf("%s: what was at offset %d is lost", what, offset)
		}
	}
	for id, first := range c.open {
		_, durable := c.promised[first]
		if _, got, ok := l.OpenTransaction(id); durable && (c.ending == nil || c.ending.ProducerID != id) && (!ok || got != first) {
			t.Fatalf("%s: the transaction of producer %d from %d is open from %d: %v", what, id, first, got, ok)
		}
	}
	checkCommitted(t, l, what)
	if c.ending == nil {
		return
	}
	m := *c.ending
	m.Repeat = true
	for range 2 {
		c.mark(t, l, m)
		if c.err != nil {
			t.Fatalf("%s: the marker again: %v", what, c.err)
		}
	}
	if _, _, open := l.OpenTransaction(m.ProducerID); open {
		t.Fatalf("%s: the transaction is open after its end was repeated", what)
	}
	markers := 0
	for _, b := range contents(t, l) {
		if b.Control() && b.ProducerID() == m.ProducerID && b.ProducerEpoch() == m.Epoch {
			markers++
		}
	}
	if markers > 1 {
		t.Fatalf("%s: %d markers", what, markers)
	}
	checkCommitted(t, l, what)
}

// TX-6 as it concerns the log, TX-8, TX-11, ST-71: the power goes after every
// single operation of a transactional workload, and several things are left of what was not synced.
func TestPowerCutsOfTransactions(t *testing.T) {
	survivals := 6
	if short() {
		survivals = 3
	}
	n := 0
	for ; ; n++ {
		disk := crashfs.New()
		disk.StopAfter(n)
		c := newTxnClient()
		err := txnWorkload(t, disk, c)
		for _, s := range crashfs.Survivals(uint64(n), survivals) {
			c.checkTransactions(t, disk.CrashClone(s), fmt.Sprintf("cut after %d operations, %v", n, s))
		}
		c.checkTransactions(t, disk.KillClone(), fmt.Sprintf("killed after %d operations", n))
		if _, cut := disk.Cut(); !cut {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	t.Logf("power cut after each of %d operations, %d survivals each", n, survivals)
}

// ST-72 for a transactional workload: every single operation fails once.
func TestEveryOperationOfTransactionsFailsOnce(t *testing.T) {
	n := 1
	for ; ; n++ {
		inner := crashfs.New()
		disk := faultfs.New(inner)
		fault := disk.Fail(faultfs.Rule{Nth: n, Short: 30})
		c := newTxnClient()
		err := txnWorkload(t, disk, c)
		if err != nil && fault.Hits() == 0 {
			t.Fatal(err)
		}
		what := fmt.Sprintf("operation %d fails: %v: %v", n, fault.Last(), err)
		// Of a snapshot that can't be read the producers are forgotten if the log before it is gone.
		forgotten := errors.Is(c.err, kerr.OutOfOrderSequenceNumber) && strings.HasSuffix(fault.Last().Name, snapshotSuffix)
		if c.err != nil && !errors.Is(c.err, kerr.KafkaStorageError) && !forgotten {
			t.Fatalf("%s: not Kafka's error", what)
		}
		c.checkTransactions(t, inner.KillClone(), what+", killed")
		if fault.Last().Kind&syncs == 0 {
			c.checkTransactions(t, inner.CrashClone(crashfs.LoseUnsynced), what+", cut")
		}
		if fault.Hits() == 0 {
			break
		}
	}
	t.Logf("each of %d operations failed once", n-1)
}
