package commitlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// KIP-890: a transactional batch that nobody vouches for is refused, and nothing of it is stored (ST-11).
func TestUnverifiedBatchIsRefused(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 1))
	b := batch(t, spec{id: 1, txn: true})
	if _, err := l.Append(b); !errors.Is(err, kerr.InvalidTxnState) {
		t.Fatal(err)
	}
	if at := l.Offsets(); at.End != 0 || l.Size() != 0 {
		t.Fatal(at)
	}
	if ask, err := l.Unvouched(1, 0); !ask || err != nil {
		t.Fatal(ask, err)
	}
	if _, err := l.AppendVerified(b, producer.AddedByProduce); err != nil {
		t.Fatal(err)
	}
	if ask, err := l.Unvouched(1, 0); ask || err != nil {
		t.Fatal(ask, err)
	}
	mustAppend(t, l, spec{id: 1, sequence: 1, txn: true}) // it goes on with what is open
	end(t, l, Marker{ProducerID: 1, Epoch: 1, Bumped: true})
	if _, err := l.Unvouched(1, 0); !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Fatal(err)
	}
}

// TX-8: a marker is a control batch of its producer, at the next offset, and wakes who watches.
func TestMarkerEndsATransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		o := testOptions(crashfs.New(), 3)
		l := openNew(t, o)
		if _, err := l.AppendVerified(batch(t, spec{id: 9, epoch: 2, n: 2, txn: true}), producer.VerifiedInTxn); err != nil {
			t.Fatal(err)
		}
		if at := l.Offsets(); at.LastStable != 0 || at.HighWatermark != 2 {
			t.Fatal(at)
		}
		if epoch, first, ok := l.OpenTransaction(9); !ok || epoch != 2 || first != 0 {
			t.Fatal(epoch, first, ok)
		}
		wake := make(chan struct{}, 1)
		cancel := l.Watch(wake)
		a := end(t, l, Marker{ProducerID: 9, Epoch: 3, Commit: commit, CoordinatorEpoch: 4, Bumped: true})
		cancel()
		if len(wake) != 1 {
			t.Error("nobody was woken")
		}
		if a.BaseOffset != 2 || a.End != 3 || a.Duplicate {
			t.Error(a)
		}
		if at := l.Offsets(); at.LastStable != 3 || at.End != 3 {
			t.Error(at)
		}
		b := contents(t, l)[1]
		m, err := b.Marker()
		if err != nil || (m.Type == record.Commit) != commit || m.CoordinatorEpoch != 4 {
			t.Error(m, err)
		}
		if b.ProducerID() != 9 || b.ProducerEpoch() != 3 || b.BaseSequence() != record.NoSequence || b.LeaderEpoch() != 3 || !b.Transactional() {
			t.Errorf("%x", []byte(b))
		}
		s, err := l.Read(0, 1<<20, true, kafka.ReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		batches(t, s.Region)
		want := []AbortedTransaction{{9, 0}}
		if commit {
			want = noneAborted
		}
		if !slices.Equal(s.Aborted, want) || s.Aborted == nil {
			t.Error(s.Aborted)
		}
	}
}

// A marker that came too late, or from a coordinator before the last, is refused, and nothing of it is stored.
func TestLateMarkerIsRefused(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 1))
	if _, err := l.AppendVerified(batch(t, spec{id: 9, epoch: 2, txn: true}), producer.VerifiedInTxn); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    Marker
		want *kerr.Error
	}{
		{Marker{ProducerID: 9, Epoch: 1}, kerr.InvalidProducerEpoch},
		{Marker{ProducerID: 9, Epoch: 2, Bumped: true}, kerr.InvalidProducerEpoch},
	} {
		if _, err := l.AppendMarker(c.m); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.m, err)
		}
	}
	end(t, l, Marker{ProducerID: 9, Epoch: 3, Bumped: true, CoordinatorEpoch: 7})
	if _, err := l.AppendMarker(Marker{ProducerID: 9, Epoch: 4, Bumped: true, CoordinatorEpoch: 6}); !errors.Is(err, kerr.TransactionCoordinatorFenced) {
		t.Error(err)
	}
	if at := l.Offsets(); at.End != 2 {
		t.Error(at)
	}
}

// On a topic of message.timestamp.type=LogAppendTime a marker has that type, too.
func TestMarkerOfLogAppendTime(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.LogAppendTime = true
	l := openNew(t, o)
	end(t, l, Marker{ProducerID: 1})
	if b := contents(t, l)[0]; !b.LogAppendTime() || b.MaxTimestamp() <= 0 {
		t.Errorf("%x", []byte(b))
	}
}

// TX-1, TX-2: producers are told by id; one with an open transaction never expires (ST-9).
func TestProducersAndTheirExpiry(t *testing.T) {
	disk := crashfs.New()
	o := testOptions(disk, 1)
	o.ProducerExpiration = 1 // everything has expired
	l := mustOpen(t, o)
	if _, err := l.AppendVerified(batch(t, spec{id: 5, txn: true, timestamp: 1000}), producer.VerifiedInTxn); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, spec{id: 3, timestamp: 1000})
	if got := l.Producers(); len(got) != 2 || got[0].ID != 3 || got[1].ID != 5 || got[1].TxnFirstOffset != 0 {
		t.Fatalf("%+v", got)
	}
	l.mu.Lock()
	l.expireAt = 0
	l.o.ProducerExpiration = 1_000_000
	l.expireLocked(l.o.Clock.Now().UnixMilli())
	l.mu.Unlock()
	if got := l.Producers(); len(got) != 1 || got[0].ID != 5 {
		t.Fatalf("%+v", got)
	}
	mustClose(t, l)
	o = testOptions(disk, 2)
	o.Clean = true
	l = openNew(t, o)
	if _, first, ok := l.OpenTransaction(5); !ok || first != 0 || l.Offsets().LastStable != 0 {
		t.Error("the open transaction is lost over a stop:", first, ok)
	}
}

// A log that is closed takes no marker; the coordinator repeats it when the log is open again (ST-60).
func TestMarkerOnAClosedLog(t *testing.T) {
	l := mustOpen(t, testOptions(crashfs.New(), 1))
	mustClose(t, l)
	if _, err := l.AppendMarker(Marker{ProducerID: 1}); !errors.Is(err, kerr.KafkaStorageError) {
		t.Error(err)
	}
}
