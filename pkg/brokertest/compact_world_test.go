package brokertest_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// compactTopics are topics whose segments take a few records. Tombstones go within seconds.
var compactTopics = []string{"table", "both"}

const compactPartitions = 2

func compactConfigs(name string) map[string]string {
	policy := map[string]string{"table": "compact", "both": "compact,delete"}[name]
	return map[string]string{"cleanup.policy": policy, "internal.segment.bytes": "600", "delete.retention.ms": "1500", "min.cleanable.dirty.ratio": "0"}
}

// A tableRecord is one that was sent to a compacted topic.
type tableRecord struct {
	offset int64
	key    string
	value  string // null: ""
	txn    int    // number of the transaction, 0: none
	acked  bool   // answered
}

// A tablePart is what a client knows of one partition.
type tablePart struct {
	sent     []tableRecord
	next     int64 // where the next record will be
	flushed  int64 // what was acknowledged below outlives a power cut
	sequence int32
	last     []byte // the last batch of the producer that was acknowledged durably, as it was sent
	lastAt   int64
	left     bool // alone: a request was refused
}

// A tableWorld is what was sent to compacted topics, and what was promised of it.
type tableWorld struct {
	mu       *sync.Mutex // held for a change, since cuts are taken meanwhile, and never over a request
	ids      map[string][16]byte
	parts    map[string][]tablePart
	txns     []outcome // by number less 1
	producer int64
	count    int // of values
}

func (w *tableWorld) clone() *tableWorld {
	c := *w
	c.mu = new(sync.Mutex)
	c.ids, c.parts, c.txns = maps.Clone(w.ids), maps.Clone(w.parts), slices.Clone(w.txns)
	for name, parts := range c.parts {
		c.parts[name] = slices.Clone(parts)
		for i := range parts {
			c.parts[name][i].sent = slices.Clone(parts[i].sent)
		}
	}
	return &c
}

func (w *tableWorld) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// killed makes all that was acknowledged outlive what comes.
func (w *tableWorld) killed() {
	for _, parts := range w.parts {
		for i := range parts {
			parts[i].flushed = parts[i].next
		}
	}
}

// createTables makes the topics.
func createTables(t *testing.T, p peer) *tableWorld {
	t.Helper()
	w := &tableWorld{mu: new(sync.Mutex), ids: map[string][16]byte{}, parts: map[string][]tablePart{}, producer: p.producerID()}
	for _, name := range compactTopics {
		req := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, compactPartitions, 1
		for config, value := range compactConfigs(name) {
			topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: config, Value: &value})
		}
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 10_000
		got := ask[*kmsg.CreateTopicsResponse](p, req).Topics[0]
		noError(t, kerr.ErrorForCode(got.ErrorCode))
		w.ids[name], w.parts[name] = got.TopicID, make([]tablePart, compactPartitions)
	}
	return w
}

// batch is records for a partition; the world has them as sent.
func (w *tableWorld) batch(t *testing.T, name string, part int, o record.Options, txn int, records ...tableRecord) []byte {
	t.Helper()
	p := &w.parts[name][part]
	b := record.NewBuilder(o)
	for _, r := range records {
		value := []byte(r.value)
		if r.value == "" {
			value = nil
		}
		noError(t, b.Append(time.Now().UnixMilli(), []byte(r.key), value))
		r.offset, r.txn = p.next, txn
		p.sent = append(p.sent, r)
		p.next++
	}
	out, err := b.Batch()
	noError(t, err)
	return out
}

// answered says that the last n records of a partition were acknowledged from base on, durably or not.
func (w *tableWorld) answered(t *testing.T, name string, part, n int, base int64, durable bool) {
	t.Helper()
	p := &w.parts[name][part]
	if want := p.next - int64(n); base != want {
		t.Errorf("%s-%d: records are at offset %d, not at %d", name, part, base, want)
	}
	for i := range p.sent[len(p.sent)-n:] {
		p.sent[len(p.sent)-n+i].acked = true
	}
	if durable {
		p.flushed = p.next
	}
}

// value is another one each time.
func (w *tableWorld) value() string {
	w.count++
	return fmt.Sprint("v", w.count)
}

// rows are the records of a partition, as a consumer of an isolation level has them, and the end of what it may see.
func (p peer) rows(name string, id [16]byte, partition int32, isolation int8) (rows []tableRecord, end int64) {
	p.t.Helper()
	refused := 0
	for next := int64(0); ; {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.SessionEpoch, req.IsolationLevel = 1<<20, -1, isolation
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, next, 1000
		req.Topics = []kmsg.FetchRequestTopic{{Topic: name, TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{part}}}
		got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
		err := kerr.ErrorForCode(got.ErrorCode)
		if errors.Is(err, kerr.KafkaStorageError) && refused < 1 { // a read that a failing disk refuses is repeated
			refused++
			continue
		}
		if err != nil {
			p.t.Fatalf("fetch %s-%d at %d: %v", name, partition, next, err)
		}
		end = got.HighWatermark
		if isolation == 1 {
			end = got.LastStableOffset
		}
		after, more, err := rowsIn(&got, next)
		if err != nil {
			p.t.Fatalf("%s-%d at %d: %v", name, partition, next, err)
		}
		rows = append(rows, more...)
		if after == next || after >= end {
			return rows, end // at the end, or in a gap that ends there
		}
		next = after
	}
}

// rowsIn reads a response as consumers do (committedIn), with offsets and keys. next is where the consumer goes on.
func rowsIn(got *kmsg.FetchResponseTopicPartition, from int64) (next int64, rows []tableRecord, err error) {
	aborts := slices.Clone(got.AbortedTransactions)
	slices.SortFunc(aborts, func(x, y kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(x.FirstOffset, y.FirstOffset)
	})
	aborted := map[int64]bool{}
	next = from
	for rest := got.RecordBatches; len(rest) > 0; {
		b, after, err := record.Parse(rest)
		if err != nil {
			break // the response may end within a batch
		}
		if err := b.CheckCRC(); err != nil {
			return next, rows, err
		}
		if b.LastOffset() < next {
			return next, rows, fmt.Errorf("a batch of the offsets %d to %d where %d is next", b.BaseOffset(), b.LastOffset(), next)
		}
		for len(aborts) > 0 && aborts[0].FirstOffset <= b.LastOffset() {
			aborted[aborts[0].ProducerID] = true
			aborts = aborts[1:]
		}
		switch {
		case b.Control():
			if b.Count() == 0 {
				break
			}
			m, err := b.Marker()
			if err != nil {
				return next, rows, err
			}
			if m.Type == record.Abort {
				delete(aborted, b.ProducerID())
			}
		case b.Transactional() && aborted[b.ProducerID()]:
		default:
			for r, err := range b.Records() {
				at := b.BaseOffset() + int64(r.OffsetDelta)
				if err != nil {
					return next, rows, err
				}
				if at >= from {
					rows = append(rows, tableRecord{offset: at, key: string(r.Key), value: string(r.Value)})
				}
			}
		}
		next, rest = b.LastOffset()+1, after
	}
	return next, rows, nil
}

// check wants a broker to have of each key what was promised to be the latest, at its offset, and nothing that has gone, or was aborted. It goes on
// from there: a repeat of the last batch is known, new records are taken, compaction goes on, and all holds after it.
func (w *tableWorld) check(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	p := newPeer(t, b)
	w.checkRows(p, 0)
	tx := &txnClient{name: "tx"}
	tx.connect(t, b)
	if err := tx.init(); err != nil { // what was open is aborted
		t.Fatalf("init: %v", err)
	}
	w.checkRows(p, 1)
	for name, parts := range w.parts {
		for i := range parts {
			w.goOn(p, name, i)
		}
	}
	<-time.After(2200 * time.Millisecond) // two sweeps
	w.checkRows(p, 1)
}

// goOn repeats a partition's last batch, and writes a key that is there and one that is not.
func (w *tableWorld) goOn(p peer, name string, i int) {
	p.t.Helper()
	part := &w.parts[name][i]
	if part.left {
		return
	}
	if part.last != nil {
		if at, err := p.put(w, name, i, -1, part.last); err != nil || at != part.lastAt {
			p.t.Errorf("%s-%d: a repeat of the batch at %d is at %d: %v", name, i, part.lastAt, at, err)
		}
	}
	_, end := p.rows(name, w.ids[name], int32(i), 0)
	w.change(func() { part.next = end })
	for range 4 {
		var batch []byte
		w.change(func() {
			batch = w.batch(p.t, name, i, record.Options{}, 0, tableRecord{key: "k1", value: w.value()}, tableRecord{key: "after", value: w.value()})
		})
		at, err := p.put(w, name, i, -1, batch)
		if err != nil {
			p.t.Fatalf("%s-%d goes on: %v", name, i, err)
		}
		w.change(func() { w.answered(p.t, name, i, 2, at, true) })
	}
}

// put produces a batch to one partition.
func (p peer) put(w *tableWorld, name string, i int, acks int16, batch []byte) (int64, error) {
	batches := make([][]byte, i+1)
	batches[i] = bytes.Clone(batch)
	offsets, errs := p.tryProduce(name, w.ids[name], acks, batches)
	return offsets[i], errs[i]
}

// checkRows holds each partition against what was sent. With isolation 1 it wants the promises kept; before the transactions have ended, only
// that what is there was sent.
func (w *tableWorld) checkRows(p peer, isolation int8) {
	p.t.Helper()
	for name, parts := range w.parts {
		for i := range parts {
			rows, end := p.rows(name, w.ids[name], int32(i), isolation)
			w.change(func() {
				if err := w.partRows(&parts[i], rows, end, isolation); err != nil {
					p.t.Errorf("%s-%d: %v, in %v", name, i, err, rows)
				}
			})
		}
	}
}

func (w *tableWorld) partRows(part *tablePart, rows []tableRecord, end int64, isolation int8) error {
	if end < part.flushed {
		return fmt.Errorf("it is seen up to %d, and was acknowledged durably up to %d", end, part.flushed)
	}
	sent := map[int64]*tableRecord{}
	for i := range part.sent {
		sent[part.sent[i].offset] = &part.sent[i]
	}
	found := map[string]*tableRecord{} // the latest by key
	last := int64(-1)
	for _, r := range rows {
		was := sent[r.offset]
		switch {
		case r.offset <= last:
			return fmt.Errorf("offset %d follows %d", r.offset, last)
		case was == nil || was.key != r.key || was.value != r.value:
			return fmt.Errorf("nobody sent %v there", r)
		case isolation == 1 && !w.mayBeSeen(was):
			return fmt.Errorf("%v is seen, of a transaction that was not committed", r)
		}
		last, found[r.key] = r.offset, was
	}
	if isolation == 0 { // what a cut has taken is gone for good, and its offsets are given anew
		part.sent = slices.DeleteFunc(part.sent, func(r tableRecord) bool { return r.offset >= end })
		return nil
	}
	for key, want := range w.promised(part) {
		got := found[key]
		switch {
		case got == nil && want.value == "" || got != nil && got.offset >= want.offset: // it, or what came after it
		case got == nil:
			return fmt.Errorf("%v, the latest of its key, is gone", *want)
		default:
			return fmt.Errorf("%v is the latest of its key, and there is %v", *want, *got)
		}
	}
	return nil
}

// mayBeSeen says whether a read_committed consumer may have a record.
func (w *tableWorld) mayBeSeen(r *tableRecord) bool {
	return r.txn == 0 || w.txns[r.txn-1] == committing || w.txns[r.txn-1] == isCommitted
}

// promised is the latest record of each key that has to be there, by key.
func (w *tableWorld) promised(part *tablePart) map[string]*tableRecord {
	latest := map[string]*tableRecord{}
	for i := range part.sent {
		r := &part.sent[i]
		if r.txn == 0 && r.acked && r.offset < part.flushed || r.txn > 0 && w.txns[r.txn-1] == isCommitted {
			latest[r.key] = r
		}
	}
	return latest
}

// A tableClient sends to compacted topics.
type tableClient struct {
	peer
	w      *tableWorld
	tx     *txnClient
	txn    int // the transaction that is open, 0: none
	failed int
}

func (c *tableClient) connect(t *testing.T, b *brokertest.Broker) {
	c.peer = newPeer(t, b)
	c.tx = &txnClient{name: "tx"}
	c.tx.connect(t, b)
	c.txn = 0
	if err := c.tx.init(); err != nil {
		t.Fatalf("init: %v", err)
	}
}

// send is a batch of the idempotent producer; what is refused leaves the partition alone.
func (c *tableClient) send(name string, i int, acks int16, records ...tableRecord) {
	c.t.Helper()
	p := &c.w.parts[name][i]
	if p.left {
		return
	}
	var batch []byte
	c.w.change(func() {
		batch = c.w.batch(c.t, name, i, record.Options{Producer: &record.Producer{ID: c.w.producer, BaseSequence: p.sequence}}, 0, records...)
	})
	at, err := c.put(c.w, name, i, acks, batch)
	c.w.change(func() {
		if err != nil {
			c.failed++
			if p.left = true; !errors.Is(err, kerr.KafkaStorageError) {
				c.t.Errorf("produce: %v", err)
			}
			return
		}
		p.sequence += int32(len(records))
		c.w.answered(c.t, name, i, len(records), at, acks == -1)
		if acks == -1 {
			p.last, p.lastAt = batch, at
		} else {
			p.last = nil
		}
	})
}

// sendInTxn is a batch of the transaction, which it opens.
func (c *tableClient) sendInTxn(name string, i int, records ...tableRecord) {
	c.t.Helper()
	var batch []byte
	c.w.change(func() {
		if c.txn == 0 {
			c.w.txns = append(c.w.txns, stillOpen)
			c.txn = len(c.w.txns)
			c.tx.next = map[int32]int32{}
		}
		slot := int32(slices.Index(compactTopics, name)*compactPartitions + i)
		o := record.Options{Producer: &record.Producer{ID: c.tx.pid, Epoch: c.tx.epoch, BaseSequence: c.tx.next[slot]}, Transactional: true}
		c.tx.next[slot] += int32(len(records))
		batch = c.w.batch(c.t, name, i, o, c.txn, records...)
	})
	req := kmsg.NewPtrProduceRequest()
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = name, c.w.ids[name]
	topic.Partitions = []kmsg.ProduceRequestTopicPartition{{Partition: int32(i), Records: batch}}
	req.TransactionID, req.Acks, req.TimeoutMillis, req.Topics = &c.tx.name, -1, 10_000, append(req.Topics, topic)
	got := ask[*kmsg.ProduceResponse](c.tx.peer, req).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		c.t.Fatalf("produce in a transaction: %v", err)
	}
	c.w.change(func() { c.w.answered(c.t, name, i, len(records), got.BaseOffset, true) })
}

// end ends the transaction; its markers take an offset in each partition.
func (c *tableClient) end(commit bool) {
	c.t.Helper()
	if c.txn == 0 {
		return
	}
	c.w.change(func() {
		c.w.txns[c.txn-1] = isAborted
		if commit {
			c.w.txns[c.txn-1] = committing
		}
	})
	if err := c.tx.end(commit); err != nil {
		c.t.Fatalf("end: %v", err)
	}
	c.w.change(func() {
		if commit {
			c.w.txns[c.txn-1] = isCommitted
		}
		for _, parts := range c.w.parts {
			for i := range parts {
				if p := &parts[i]; slices.ContainsFunc(p.sent, func(r tableRecord) bool { return r.txn == c.txn }) {
					p.next++
					p.flushed = p.next
				}
			}
		}
		c.txn = 0
	})
}
