package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// scanner reads all of the topic over and over, through kills and compactions.
func (r *run) scanner(k *keyed, stop <-chan struct{}) {
	p := r.peer()
	defer p.close()
	for !over(stop) {
		for part := range int32(compactedPartitions) {
			if _, err := r.scan(p, k, part); err != nil {
				r.fail(err)
				return
			}
		}
		r.did("scans")
	}
}

// scan reads a partition from its start to what is its end by then, and wants offsets to ascend and records to be those that were written, each once.
func (r *run) scan(p *peer, k *keyed, part int32) (records int, err error) {
	id, _ := r.topic(compacted)
	start, end, err := p.bounds(compacted, part)
	if err != nil {
		return 0, err
	}
	last, seen := int64(-1), map[int]bool{}
	err = p.batches(compacted, id, part, start, end, func(b record.Batch, _ int64) error {
		for rec, err := range b.Records() {
			if err != nil {
				return err
			}
			offset := b.BaseOffset() + int64(rec.OffsetDelta)
			if offset <= last {
				return fmt.Errorf("%s-%d: offset %d after %d", compacted, part, offset, last)
			}
			if last = offset; b.Control() {
				continue
			}
			w, err := k.at(part, offset, rec.Key, rec.Value, headerOf(rec.Headers))
			if err != nil {
				return err
			}
			if seen[w.n] {
				return fmt.Errorf("%s-%d: number %d twice, the second time at %d", compacted, part, w.n, offset)
			}
			seen[w.n] = true
			records++
		}
		return nil
	})
	return records, err
}

func headerOf(headers []record.Header) string {
	for _, h := range headers {
		if h.Key == number {
			return string(h.Value)
		}
	}
	return ""
}

// follower is a consumer that begins at the start, and goes on until it is stopped: what it is given ascends.
func (r *run) follower(k *keyed, isolation kgo.IsolationLevel, stop <-chan struct{}) {
	from := map[int32]kgo.Offset{}
	for part := range int32(compactedPartitions) {
		from[part] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(patient(r.addr, kgo.FetchIsolationLevel(isolation), kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{compacted: from}))...)
	if err != nil {
		r.fail(err)
		return
	}
	defer cl.Close()
	last := map[int32]int64{}
	for !over(stop) {
		ctx, cancel := context.WithTimeout(r.ctx, 300*time.Millisecond)
		f := cl.PollFetches(ctx)
		cancel()
		for rec := range f.RecordsAll() {
			r.fail(k.follows(rec, last))
		}
	}
	r.did("followers")
}

// follows wants a record to be behind the one before it, and to be one that was written.
func (k *keyed) follows(rec *kgo.Record, last map[int32]int64) error {
	if before, ok := last[rec.Partition]; ok && rec.Offset <= before {
		return fmt.Errorf("%s-%d: a consumer is given offset %d after %d", compacted, rec.Partition, rec.Offset, before)
	}
	last[rec.Partition] = rec.Offset
	n := ""
	for _, h := range rec.Headers {
		if h.Key == number {
			n = string(h.Value)
		}
	}
	_, err := k.at(rec.Partition, rec.Offset, rec.Key, rec.Value, n)
	return err
}

// verifyCompacted holds the topic against what was written, while nobody else writes. An open transaction is fenced first.
func (r *run) verifyCompacted(k *keyed) (left int, err error) {
	cl := r.newKeyedTransactor(k).open()
	if cl == nil {
		return 0, nil // it is told
	}
	defer cl.Close()
	ends, err := r.fence(k, cl)
	if err != nil {
		return 0, fmt.Errorf("the producer after all others: %w", err)
	}
	p := r.peer()
	defer p.close()
	for part := range int32(compactedPartitions) {
		n, err := r.scan(p, k, part)
		if left += n; err != nil {
			return left, err
		}
	}
	there, err := r.committedKeys(k, ends)
	if err != nil {
		return left, err
	}
	return left, k.check(there)
}

// fence ends what the transactional producer has left open, and writes a last record to each partition.
func (r *run) fence(k *keyed, cl *kgo.Client) (ends map[int32]int64, err error) {
	if err := cl.BeginTransaction(); err != nil {
		return nil, err
	}
	ends = map[int32]int64{}
	var sent []*written
	for part := range int32(compactedPartitions) {
		w := k.send(fmt.Sprint("end-", part), part, false, inDoubt)
		rec, err := cl.ProduceSync(r.ctx, w.record()).First()
		if err != nil {
			return nil, err
		}
		ends[part], sent = rec.Offset, append(sent, w)
	}
	if err := cl.EndTransaction(r.ctx, kgo.TryCommit); err != nil {
		return nil, err
	}
	for _, w := range sent {
		k.became(w, committed, ends[w.part])
	}
	return ends, nil
}

// committedKeys are the records of committed transactions, and of none, by key.
func (r *run) committedKeys(k *keyed, ends map[int32]int64) (map[string][]*written, error) {
	from := map[int32]kgo.Offset{}
	for part := range ends {
		from[part] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{compacted: from}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	last, by := map[int32]int64{}, map[string][]*written{}
	for left := len(ends); left > 0; {
		f := cl.PollFetches(r.ctx)
		if err := f.Err(); err != nil {
			return nil, err
		}
		for rec := range f.RecordsAll() {
			if err := k.follows(rec, last); err != nil {
				return nil, err
			}
			n, _ := strconv.Atoi(string(rec.Headers[0].Value))
			k.mu.Lock()
			by[string(rec.Key)] = append(by[string(rec.Key)], k.all[n])
			k.mu.Unlock()
			if rec.Offset == ends[rec.Partition] {
				left--
			}
		}
	}
	return by, nil
}
