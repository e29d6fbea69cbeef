package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// The topic that is compacted all the time, and how many keys each of its writers has in each partition.
const (
	compacted           = "compacted"
	compactedPartitions = 2
	compactedKeys       = 100
	tombstonesStay      = 300 * time.Millisecond // delete.retention.ms
	number              = "n"                    // header
)

// makeCompacted makes the topic. Its segments are small, and its tombstones go soon.
func (r *run) makeCompacted() error {
	p := r.peer()
	defer p.close()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = compacted, compactedPartitions, 1
	for name, value := range map[string]string{"cleanup.policy": "compact", "internal.segment.bytes": "16384", "delete.retention.ms": fmt.Sprint(tombstonesStay.Milliseconds()), "min.cleanable.dirty.ratio": "0"} {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	resp, _, err := ask[*kmsg.CreateTopicsResponse](p, req)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		return err
	}
	id, _, _, err := p.find(compacted)
	r.setTopic(compacted, id, compactedPartitions)
	return err
}

// draw is a key of a writer, and whether it is to be deleted.
func draw(rng *rand.Rand, writer string, part int32) (key string, tombstone bool) {
	return fmt.Sprintf("%s-%d-%d", writer, part, rng.IntN(compactedKeys)), rng.IntN(4) == 0
}

// A keyedPeer is an idempotent producer of single requests whose batches are in all codecs. Each is repeated until it is answered, and some
// after that. Now and then it deletes a key and repeats that only when the tombstone is due to be gone: the batch has to be known all the same (ST-46).
type keyedPeer struct {
	*idempotent
	k *keyed
}

func (p *keyedPeer) work(stop <-chan struct{}) {
	for p.begin() && !over(stop) {
		part := int32(p.rng.IntN(compactedPartitions))
		n, deletes := 1+p.rng.IntN(8), p.rng.IntN(60) == 0
		if deletes {
			n = 1
		}
		batch, sent := p.build(part, n, deletes)
		if !p.stores(part, batch, sent) {
			return
		}
		if deletes {
			select {
			case <-time.After(4 * tombstonesStay):
			case <-stop:
			}
			p.did("tombstones repeated late")
		}
		if (deletes || p.rng.IntN(8) == 0) && !p.stores(part, batch, sent) {
			return
		}
		p.parts[strconv.Itoa(int(part))].next += int32(len(sent))
	}
}

// build is the next batch for a partition.
func (p *keyedPeer) build(part int32, n int, deletes bool) (batch []byte, sent []*written) {
	build := record.NewBuilder(record.Options{Codec: record.Codec(p.rng.IntN(5)), Producer: &record.Producer{ID: p.given, BaseSequence: p.sequence(part)}})
	for range n {
		key, tombstone := draw(p.rng, fmt.Sprint("peer", p.id), part)
		w := p.k.send(key, part, tombstone || deletes, inDoubt)
		sent = append(sent, w)
		p.fail(build.Append(time.Now().UnixMilli(), []byte(key), w.value(), record.Header{Key: number, Value: strconv.AppendInt(nil, int64(w.n), 10)}))
	}
	batch, err := build.Batch()
	p.fail(err)
	return batch, sent
}

func (p *keyedPeer) sequence(part int32) int32 {
	key := strconv.Itoa(int(part))
	if p.parts[key] == nil {
		p.parts[key] = &sequence{}
	}
	return p.parts[key].next
}

// stores repeats a batch until it is acknowledged: with one offset, however often it is sent.
func (p *keyedPeer) stores(part int32, batch []byte, sent []*written) bool {
	id, _ := p.topic(compacted)
	acks := int16(1)
	if p.rng.IntN(2) == 0 {
		acks = -1
	}
	offset, err := p.produce(compacted, id, part, acks, slices.Clone(batch))
	if err == nil && sent[0].offset >= 0 && sent[0].offset != offset {
		err = fmt.Errorf("a batch at %d was stored again at %d", sent[0].offset, offset)
	}
	if err != nil {
		p.fail(fmt.Errorf("produce to %s-%d: %w", compacted, part, err))
		return false
	}
	for i, w := range sent {
		p.k.became(w, committed, offset+int64(i))
	}
	p.did("keyed batches")
	return true
}

// franzKeyed is franz-go's producer, with many records in flight.
func (r *run) franzKeyed(k *keyed, rng *rand.Rand, stop <-chan struct{}) {
	cl, err := kgo.NewClient(patient(r.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))...)
	if err != nil {
		r.fail(err)
		return
	}
	defer cl.Close()
	var waiting sync.WaitGroup
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if over(stop) {
			tick.Stop()
			break
		}
		for range rng.IntN(10) {
			if cl.BufferedProduceRecords() > 1000 {
				break
			}
			part := int32(rng.IntN(compactedPartitions))
			key, tombstone := draw(rng, "franz", part)
			w := k.send(key, part, tombstone, inDoubt)
			waiting.Add(1)
			cl.Produce(r.ctx, w.record(), func(rec *kgo.Record, err error) {
				defer waiting.Done()
				if err == nil {
					k.became(w, committed, rec.Offset)
				} else if _, eof := errors.AsType[*kgo.ErrFirstReadEOF](err); eof {
					r.did("keyed records given up by franz-go")
				} else {
					r.fail(fmt.Errorf("franz-go gave up a record for %s-%d: %w", compacted, part, err))
				}
			})
		}
	}
	waiting.Wait()
}

// patient are the options of a client that does not give up while the broker is away.
func patient(addr string, more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.RequestRetries(100_000),
		kgo.RetryTimeout(2 * time.Minute), kgo.MetadataMinAge(50 * time.Millisecond)}, more...)
}

func (w *written) record() *kgo.Record {
	return &kgo.Record{Topic: compacted, Partition: w.part, Key: []byte(w.key), Value: w.value(),
		Headers: []kgo.RecordHeader{{Key: number, Value: strconv.AppendInt(nil, int64(w.n), 10)}}}
}

// A keyedTransactor makes transactions of some records, and aborts a third of them.
type keyedTransactor struct {
	*transactor
	k   *keyed
	rng *rand.Rand
}

func (r *run) newKeyedTransactor(k *keyed) *keyedTransactor {
	return &keyedTransactor{transactor: &transactor{run: r, id: exactlyProducers}, k: k, rng: r.rng()}
}

func (p *keyedTransactor) work(stop <-chan struct{}) {
	for !over(stop) && p.ctx.Err() == nil {
		cl := p.open()
		if cl == nil {
			return
		}
		for !over(stop) && p.transaction(cl) {
			p.did("keyed transactions")
		}
		cl.Close()
	}
}

// transaction makes one; false: the client is of no more use. What it leaves open is aborted by the next client.
func (p *keyedTransactor) transaction(cl *kgo.Client) bool {
	if err := cl.BeginTransaction(); err != nil {
		return false
	}
	var records []*kgo.Record
	var sent []*written
	for range 1 + p.rng.IntN(6) {
		part := int32(p.rng.IntN(compactedPartitions))
		key, tombstone := draw(p.rng, "txn", part)
		w := p.k.send(key, part, tombstone, aborted)
		sent, records = append(sent, w), append(records, w.record())
	}
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	err := cl.ProduceSync(ctx, records...).FirstErr()
	commit := err == nil && p.rng.IntN(3) != 0
	became := func(state outcome) {
		for i, w := range sent {
			p.k.became(w, state, records[i].Offset)
		}
	}
	if commit {
		became(inDoubt)
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return false
	}
	if commit {
		became(committed)
	}
	return err == nil
}

// compactor rolls and compacts without a pause, by the control API.
func (r *run) compactor(k *keyed, http string, rng *rand.Rand, stop <-chan struct{}) {
	for tick := time.NewTicker(time.Millisecond); !over(stop); <-tick.C {
		what := "compact"
		if rng.IntN(4) == 0 {
			what = "roll"
		}
		var done struct{ Segments, ReclaimedBytes int }
		answered, err := r.sweep("http://"+http+"/v1/topics/"+compacted+"/"+what, &done)
		r.fail(err)
		if answered && what == "compact" {
			k.mu.Lock()
			k.passes["compactions"]++
			k.passes["segments rewritten"] += done.Segments
			k.passes["bytes reclaimed"] += done.ReclaimedBytes
			k.mu.Unlock()
		}
	}
}

// sweep asks once. Only an answer that says that something has failed is an error: the broker may be away, or not be ready.
func (r *run) sweep(url string, into any) (answered bool, err error) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, url, nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, nil //nolint:nilerr // it was killed
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // it was killed
	case resp.StatusCode == http.StatusInternalServerError:
		return false, fmt.Errorf("%s: %s", url, body)
	case resp.StatusCode != http.StatusOK:
		return false, nil
	}
	return true, json.Unmarshal(body, into)
}

// rewriting says whether a kill has left the file of a segment that was being rewritten.
func (p *program) rewriting() bool {
	found, err := filepath.Glob(filepath.Join(p.data(), compacted+"-*", "*.cleaned"))
	return err == nil && len(found) > 0
}
