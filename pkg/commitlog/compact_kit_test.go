package commitlog

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// deleteRetention is delete.retention.ms in the tests of compaction.
const deleteRetention = 1000

// A keyed is a log beside a list of what was written to it, and of what compaction should have left of that.
type keyed struct {
	t         testing.TB
	rng       *rand.Rand
	l         *Log
	what      string
	now       int64 // ms, for compaction
	dirty     int64 // as meta.db says
	maxKeys   int
	distinct  int            // keys
	mostDead  int            // as the map's
	beside    func() error   // done now and then while a pass reads or writes; nil: nothing is
	ways      map[string]int // how often passes went which way
	batches   []*keyedBatch
	producers map[int64]*keyedProducer
}

type keyedBatch struct {
	base, last int64
	id         int64
	txn        string // "": in none; "open", "committed", "aborted"
	horizon    int64
	records    []keyedRecord
}

type keyedRecord struct {
	offset     int64
	key, value string // "-": null
}

type keyedProducer struct {
	sequence int32
	open     bool
	sent     []sentBatch // the last of them that the log should know
}

type sentBatch struct {
	batch record.Batch // as it was sent
	at    int64
}

func newKeyed(t testing.TB, l *Log, seed uint64) *keyed {
	m := &keyed{t: t, rng: rand.New(rand.NewPCG(seed, 8)), l: l, now: 10_000, maxKeys: 1000, distinct: 12, mostDead: mostDead, ways: map[string]int{}, producers: map[int64]*keyedProducer{}}
	for id := range int64(3) {
		m.producers[id+1] = &keyedProducer{}
	}
	return m
}

func keyedOptions(o Options) Options {
	cfg := *o.Config
	cfg.SegmentBytes, cfg.DeleteRetentionMs, cfg.IndexIntervalBytes = 2000, deleteRetention, 200 // not Compact: that refuses records without a key
	cfg.SegmentMs = math.MaxInt64                                                                // markers have the time of the clock: with that of the records, each would make the segment roll
	o.Config = &cfg
	return o
}

// field is nil for "-".
func field(s string) []byte {
	if s == "-" {
		return nil
	}
	return []byte(s)
}

// put appends records, in a transaction of producer id if txn; id 0: none.
func (m *keyed) put(id int64, txn bool, codec record.Codec, records ...keyedRecord) error {
	o := record.Options{Codec: codec, Transactional: txn}
	p := m.producers[id]
	if p != nil {
		o.Producer = &record.Producer{ID: id, BaseSequence: p.sequence}
	}
	b := record.NewBuilder(o)
	for _, r := range records {
		if err := b.Append(1000+m.now, field(r.key), field(r.value)); err != nil {
			m.t.Fatal(err)
		}
	}
	sent, err := b.Batch()
	if err != nil {
		m.t.Fatal(err)
	}
	kept := slices.Clone(sent)
	var a Appended
	if txn {
		a, err = m.l.AppendVerified(sent, producer.VerifiedInTxn)
	} else {
		a, err = m.l.Append(sent)
	}
	if err != nil {
		return err
	}
	kb := &keyedBatch{base: a.BaseOffset, last: a.End - 1, id: id}
	for i, r := range records {
		r.offset = a.BaseOffset + int64(i)
		kb.records = append(kb.records, r)
	}
	if txn {
		kb.txn, p.open = "open", true
	}
	if p != nil {
		p.sequence += int32(len(records))
		p.sent = append(p.sent, sentBatch{kept, a.BaseOffset})
		p.sent = p.sent[max(0, len(p.sent)-producer.CachedBatches):]
	}
	m.batches = append(m.batches, kb)
	return nil
}

// end commits or aborts the producer's transaction.
func (m *keyed) end(id int64, commit bool) error {
	if _, err := m.l.AppendMarker(Marker{ProducerID: id, Commit: commit}); err != nil {
		return err
	}
	m.producers[id].open = false
	for _, b := range m.batches {
		if b.id == id && b.txn == "open" {
			b.txn = map[bool]string{true: "committed", false: "aborted"}[commit]
		}
	}
	return nil
}

// endOne ends a transaction, if one is open.
func (m *keyed) endOne() error {
	for _, id := range slices.Sorted(maps.Keys(m.producers)) {
		if m.producers[id].open {
			return m.end(id, m.rng.IntN(2) == 0)
		}
	}
	return nil
}

func (m *keyed) step() error {
	switch n := m.rng.IntN(20); {
	case n < 9:
		return m.put(0, false, record.Codec(m.rng.IntN(5)), m.records()...)
	case n < 13:
		id := 1 + m.rng.Int64N(3)
		return m.put(id, m.producers[id].open || id > 1, record.Codec(m.rng.IntN(5)), m.records()...)
	case n < 16:
		return m.endOne()
	case n < 18:
		return m.l.Roll()
	case n < 19:
		m.now += m.rng.Int64N(2 * deleteRetention)
	}
	return nil
}

func (m *keyed) records() (all []keyedRecord) {
	for range 1 + m.rng.IntN(5) {
		r := keyedRecord{key: fmt.Sprint("k", m.rng.IntN(m.distinct)), value: fmt.Sprint("v", m.rng.IntN(1_000_000))}
		switch m.rng.IntN(8) {
		case 0:
			r.value = "-"
		case 1:
			if m.rng.IntN(4) == 0 {
				r.key = "-"
			}
		}
		all = append(all, r)
	}
	return all
}

// compact makes passes until nothing is left to do.
func (m *keyed) compact() error {
	for {
		keys := NewKeyMap(m.maxKeys)
		keys.mostDead = m.mostDead
		pass := Compaction{From: m.dirty, Keys: keys, NowMs: m.now}
		if m.beside != nil {
			pass.Pace = func(context.Context, int) error {
				if m.rng.IntN(20) > 0 {
					return nil
				}
				return m.beside()
			}
		}
		c, err := m.l.Compact(m.t.Context(), pass)
		if err != nil {
			return err
		}
		switch {
		case c.Next == m.dirty:
			m.ways["nothing is dirty"]++
		case !keys.whole():
			m.ways["rounds"]++
		case keys.confines:
			m.ways["all keys at once"]++
		default:
			m.ways["too sparse for rounds"]++
		}
		if c.More {
			m.ways["another pass"]++
		}
		m.dirty = c.Next
		if !c.More {
			m.expect()
			return nil
		}
	}
}

// expect applies the rules of compaction to the list (ST-40 to ST-46).
func (m *keyed) expect() {
	latest := m.latest(m.dirty)
	for _, b := range m.batches {
		if b.last >= m.dirty { // its base may be below, where the log start was moved into it
			continue
		}
		set := b.horizon
		b.records = slices.DeleteFunc(b.records, func(r keyedRecord) bool {
			switch {
			case b.txn == "aborted":
				return true
			case r.key == "-":
				return false
			case latest[r.key] > r.offset:
				return true
			case r.value != "-":
				return false
			case set == 0:
				b.horizon = m.now + deleteRetention
				return false
			}
			return set <= m.now
		})
	}
}

// latest is the latest offset of each key below end, without what was aborted.
func (m *keyed) latest(end int64) map[string]int64 {
	latest := map[string]int64{}
	for _, b := range m.batches {
		for _, r := range b.records {
			if b.txn != "aborted" && r.offset < end && r.key != "-" {
				latest[r.key] = r.offset
			}
		}
	}
	return latest
}

// want lists what should be in the log.
func (m *keyed) want() (all []keyedRecord) {
	for _, b := range m.batches {
		all = append(all, b.records...)
	}
	return all
}

// found reads the whole log as a consumer does, over the gaps.
func (m *keyed) found(from int64) (all []keyedRecord) {
	m.t.Helper()
	for offset := from; offset < m.l.Offsets().HighWatermark; {
		got := readAt(m.t, m.l, offset, 500)
		if len(got) == 0 {
			return all // a gap up to the end
		}
		for _, b := range got {
			if b.LastOffset() < offset {
				m.t.Fatalf("%s: offsets %d to %d follow %d", m.what, b.BaseOffset(), b.LastOffset(), offset)
			}
			if err := b.CheckCRC(); err != nil {
				m.t.Fatalf("%s: %v", m.what, err)
			}
			if !b.Control() {
				all = append(all, recordsOf(m.t, b)...)
			}
			offset = b.LastOffset() + 1
		}
	}
	return all
}

func recordsOf(t testing.TB, b record.Batch) (all []keyedRecord) {
	t.Helper()
	for r, err := range b.Records() {
		if err != nil {
			t.Fatal(err)
		}
		k := keyedRecord{offset: b.BaseOffset() + int64(r.OffsetDelta), key: "-", value: "-"}
		if r.Key != nil {
			k.key = string(r.Key)
		}
		if r.Value != nil {
			k.value = string(r.Value)
		}
		all = append(all, k)
	}
	return all
}

// check holds the log against the list.
func (m *keyed) check() {
	m.t.Helper()
	start := m.l.Offsets().LogStart
	want := m.want()
	if got := m.found(start); !slices.Equal(got, want) {
		m.t.Fatalf("%s: the log has\n%v, and should have\n%v", m.what, got, want)
	}
	for range 5 { // from anywhere, gaps too
		offset := start + m.rng.Int64N(m.l.Offsets().End-start+1)
		from := slices.IndexFunc(want, func(r keyedRecord) bool { return r.offset >= offset })
		got := slices.DeleteFunc(m.found(offset), func(r keyedRecord) bool { return r.offset < offset })
		if from < 0 && len(got) > 0 || from >= 0 && !slices.Equal(got, want[from:]) {
			m.t.Fatalf("%s: from offset %d on the log has\n%v\nof\n%v", m.what, offset, got, want)
		}
	}
	m.checkStable()
	m.checkReadCommitted(want)
}

// checkStable holds the last stable offset against the open transactions.
func (m *keyed) checkStable() {
	m.t.Helper()
	at := m.l.Offsets()
	stable := at.End
	for _, b := range m.batches {
		if b.txn == "open" {
			stable = b.base
			break
		}
	}
	if at.LastStable != stable {
		m.t.Fatalf("%s: last stable offset %d, want %d", m.what, at.LastStable, stable)
	}
}

// checkReadCommitted reads as a read-committed consumer does, which drops what it is told was aborted: of all
// records that are there it has those that were committed.
func (m *keyed) checkReadCommitted(all []keyedRecord) {
	m.t.Helper()
	at := m.l.Offsets()
	aborted := map[int64]bool{}
	for _, b := range m.batches {
		for offset := b.base; b.txn == "aborted" && offset <= b.last; offset++ {
			aborted[offset] = true
		}
	}
	want := slices.DeleteFunc(slices.Clone(all), func(r keyedRecord) bool { return aborted[r.offset] || r.offset >= at.LastStable })
	var got []keyedRecord
	for offset := at.LogStart; offset < at.LastStable; {
		s, err := m.l.Read(offset, 700, true, kafka.ReadCommitted)
		if err != nil {
			m.t.Fatalf("%s: %v", m.what, err)
		}
		read := batches(m.t, s.Region)
		if len(read) == 0 {
			break
		}
		aborted := slices.Clone(s.Aborted)
		dropping := map[int64]bool{}
		for _, b := range read {
			for _, a := range aborted {
				if a.FirstOffset <= b.LastOffset() {
					dropping[a.ProducerID] = true
				}
			}
			aborted = slices.DeleteFunc(aborted, func(a AbortedTransaction) bool { return a.FirstOffset <= b.LastOffset() })
			switch {
			case b.Control() && b.Count() > 0:
				if marker, err := b.Marker(); err == nil && marker.Type == record.Abort {
					delete(dropping, b.ProducerID())
				}
			case !b.Control() && (!b.Transactional() || !dropping[b.ProducerID()]):
				got = append(got, recordsOf(m.t, b)...)
			}
			offset = b.LastOffset() + 1
		}
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s: a read-committed consumer has\n%v, and should have\n%v", m.what, got, want)
	}
}

// checkProducers sends the last batches of each producer again: they are known (ST-9, ST-46).
func (m *keyed) checkProducers() {
	m.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(m.producers)) {
		for i, b := range m.producers[id].sent {
			a, err := m.l.AppendVerified(slices.Clone(b.batch), producer.VerifiedInTxn)
			if err != nil || !a.Duplicate || a.BaseOffset != b.at {
				m.t.Fatalf("%s: batch %d of the %d last of producer %d again: %+v, %v", m.what, i, len(m.producers[id].sent), id, a, err)
			}
		}
	}
}

// forget is for a log whose snapshots are lost: of each producer its last batch is known.
func (m *keyed) forget() {
	for _, p := range m.producers {
		p.sent = p.sent[max(0, len(p.sent)-1):]
	}
}

// short says whether the sweeps and models take fewer steps and seeds: with -short, and under the race detector, where
// all of them take minutes and find no more races than a part does.
func short() bool { return testing.Short() || raceDetector }
