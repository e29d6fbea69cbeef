package commitlog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A txnModel is a log with transactional producers, and what their transactions should be.
type txnModel struct {
	t     *testing.T
	rng   *rand.Rand
	disk  *crashfs.FS
	l     *Log
	what  string
	start int64 // of the log, as meta.db says
	boots int32

	deletes bool // records are deleted; then snapshots are not, as they stand for what is gone
	ids     map[int64]*txnProducer
}

type txnProducer struct {
	epoch    int16
	sequence int32
	first    int64 // of the open transaction; -1: none is open
}

// TX-1, TX-8, TX-11, ST-8, ST-9: random transactions, rolls, deletions, clean stops,
// kills and damaged indexes; the last stable offset is what a map of open transactions says, and a
// read-committed consumer sees what the batches of the log say is committed.
func TestTransactionsAgreeWithAModel(t *testing.T) {
	seeds, steps := uint64(24), 250
	if short() {
		seeds = 6
	}
	for seed := range seeds {
		m := &txnModel{t: t, rng: rand.New(rand.NewPCG(seed, 71)), deletes: seed%2 == 0, disk: crashfs.New(), ids: map[int64]*txnProducer{}}
		for id := range int64(4) {
			m.ids[id+1] = &txnProducer{first: -1}
		}
		m.open(false)
		for step := range steps {
			m.what = fmt.Sprintf("seed %d step %d", seed, step)
			m.step()
			m.check()
			if step%25 == 0 {
				checkCommitted(t, m.l, m.what)
			}
		}
		checkCommitted(t, m.l, m.what)
		m.l.Abandon()
	}
}

func (m *txnModel) open(clean bool) {
	m.boots++
	o := testOptions(m.disk, m.boots)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Clean, o.LogStart = 2500, 256, clean, m.start
	m.l = mustOpen(m.t, o)
}

func (m *txnModel) step() {
	switch op := m.rng.IntN(40); {
	case op < 16:
		m.produce()
	case op < 20:
		mustAppend(m.t, m.l, spec{n: 1 + m.rng.IntN(3), size: m.rng.IntN(200)})
	case op < 31:
		m.end()
	case op < 32:
		if err := m.l.Roll(); err != nil {
			m.t.Fatal(m.what, err)
		}
	case op < 33 && m.deletes:
		m.deleteSome()
	case op < 35:
		mustClose(m.t, m.l)
		m.damage()
		m.open(true)
	case op < 37:
		m.l.Abandon()
		m.damage()
		m.open(false)
	default:
		mustFlush(m.t, m.l)
	}
}

// produce appends a batch of a transaction, and opens it if need be.
func (m *txnModel) produce() {
	id := 1 + m.rng.Int64N(4)
	p := m.ids[id]
	verified := producer.AddedByProduce
	if p.first >= 0 {
		verified = producer.Unverified // it goes on with what is open
	}
	b := batch(m.t, spec{id: id, epoch: p.epoch, sequence: p.sequence, n: 1 + m.rng.IntN(3), size: m.rng.IntN(300), txn: true})
	if ask, err := m.l.Unvouched(id, p.epoch); err != nil || ask != (p.first < 0) {
		m.t.Fatal(m.what, ask, err)
	}
	if p.sequence > 0 && verified == producer.AddedByProduce {
		verified = producer.VerifiedInTxn // a transaction before, with an epoch that was not bumped
	}
	a, err := m.l.AppendVerified(b, verified)
	if err != nil {
		m.t.Fatal(m.what, err)
	}
	if p.first < 0 {
		p.first = a.BaseOffset
	}
	p.sequence += b.Count()
}

// end ends a transaction, sometimes one that has no records here, and sometimes with a new epoch.
func (m *txnModel) end() {
	id := 1 + m.rng.Int64N(4)
	p := m.ids[id]
	mark := Marker{ProducerID: id, Epoch: p.epoch, Commit: m.rng.IntN(2) == 0}
	if m.rng.IntN(2) == 0 {
		mark.Bumped, mark.Epoch = true, p.epoch+1
		p.epoch, p.sequence = mark.Epoch, 0
	}
	end(m.t, m.l, mark)
	p.first = -1
	if m.rng.IntN(3) == 0 { // a recovery repeats it
		mark.Repeat = true
		before := m.l.Offsets().End
		if a := end(m.t, m.l, mark); !a.Duplicate || a.End != before || m.l.Offsets().End != before {
			m.t.Fatal(m.what, "the repeat of a marker:", a)
		}
	}
}

func (m *txnModel) deleteSome() {
	at := m.l.Offsets()
	start, err := m.l.CheckStart(m.t.Context(), at.LogStart+m.rng.Int64N(at.End-at.LogStart+1))
	if err != nil {
		m.t.Fatal(m.what, err)
	}
	m.start = start
	if err := m.l.MoveStart(start); err != nil {
		m.t.Fatal(m.what, err)
	}
}

// damage does something to the .txnindex of a segment or to a snapshot, while the log is not open.
func (m *txnModel) damage() {
	var files []string
	entries, err := m.disk.ReadDir(testDir)
	if err != nil {
		return // nothing was appended yet
	}
	for _, e := range entries {
		_, suffix, ok := parseName(e.Name())
		if ok && (suffix == segment.TxnIndexSuffix || suffix == snapshotSuffix && m.start == 0) {
			files = append(files, e.Name())
		}
	}
	if len(files) == 0 || m.rng.IntN(3) == 0 {
		return
	}
	name := testDir + "/" + files[m.rng.IntN(len(files))]
	if m.rng.IntN(2) == 0 {
		if err := m.disk.Remove(name); err != nil {
			m.t.Fatal(m.what, err)
		}
		return
	}
	f, err := m.disk.OpenFile(name, 2, 0)
	if err != nil {
		m.t.Fatal(m.what, err)
	}
	defer f.Close()
	if size, err := f.Size(); err != nil {
		m.t.Fatal(m.what, err)
	} else if err := f.Truncate(size + 33); err != nil {
		m.t.Fatal(m.what, err)
	}
}

func (m *txnModel) check() {
	at := m.l.Offsets()
	want := at.End
	for id, p := range m.ids {
		epoch, first, ok := m.l.OpenTransaction(id)
		if ok != (p.first >= 0) || ok && (first != p.first || epoch != p.epoch) {
			m.t.Fatalf("%s: producer %d has an open transaction from %d of epoch %d, %v; want %+v", m.what, id, first, epoch, ok, p)
		}
		if ok {
			want = min(want, max(p.first, at.LogStart))
		}
	}
	if at.LastStable != want {
		m.t.Fatalf("%s: last stable offset %d, want %d", m.what, at.LastStable, want)
	}
	if n, _ := m.l.Available(at.LastStable, kafka.ReadCommitted); n != 0 {
		m.t.Fatalf("%s: %d bytes above the last stable offset", m.what, n)
	}
}
