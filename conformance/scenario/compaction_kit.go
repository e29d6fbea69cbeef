package scenario

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// cleaning has a broker whose log cleaner makes a pass when a scenario wants one, by judge.Env.Compact: Kafka's looks for work all the time,
// and what may be done is altered; ours is asked. Retention does not look of itself.
var cleaning = target.Options{Control: true, Properties: map[string]string{"log.initial.task.delay.ms": "86400000", "log.cleaner.backoff.ms": "20"}}

// tombstone is a record that says that a key is gone.
func tombstone(key string) judge.Record { return judge.Record{Key: []byte(key)} }

// keyed is a batch of records with keys, given as pairs of key and value.
func keyed(pairs ...string) *judge.Batch {
	var records []judge.Record
	for i := 0; i < len(pairs); i += 2 {
		records = append(records, judge.KeyValue(pairs[i], pairs[i+1]))
	}
	return judge.NewBatch(records...)
}

// A compactedLog is partition 0 of a topic that Compact alone compacts, in segments that begin where the scenario says: segment.ms is an hour, and
// the timestamps of each segment are two hours after those of the one before.
type compactedLog struct {
	e        *judge.Env
	c        *judge.Conn
	topic    judge.Topic
	time     int64   // of the records of the active segment, in ms
	end      int64   // the next offset
	segments []int64 // where each begins
	times    []int64 // of each
}

const twoHours = 2 * 60 * 60 * 1000

// newCompactedLog makes the topic; its first segment is at a time. configs are more of the topic's.
func newCompactedLog(e *judge.Env, label string, time int64, configs ...string) *compactedLog {
	all := append([]string{judge.DirtyRatio, "1", "segment.ms", "3600000", "message.timestamp.after.max.ms", "9223372036854775807"}, configs...)
	if !slices.Contains(all, "cleanup.policy") {
		all = append(all, "cleanup.policy", "compact")
	}
	return &compactedLog{e: e, c: e.Conn(), topic: e.CreateTopic(label, 1, all...), time: time - twoHours}
}

// segment begins a segment with these batches: the one before is sealed.
func (l *compactedLog) segment(batches ...*judge.Batch) {
	l.time += twoHours
	l.segments, l.times = append(l.segments, l.end), append(l.times, l.time)
	l.add(batches...)
}

// add appends batches to the active segment.
func (l *compactedLog) add(batches ...*judge.Batch) {
	for _, b := range batches {
		produced(l.e, l.topic, 0, b.At(l.time))
		l.end += int64(b.LastOffsetDelta) + 1
	}
}

// active is where the active segment begins.
func (l *compactedLog) active() int64 { return l.segments[len(l.segments)-1] }

// compact has the cleaner make a pass over all but the active segment, and looks at what it has left.
func (l *compactedLog) compact(stage string) {
	l.e.Compact(l.topic, l.active())
	l.look(stage)
}

// compactCommitted is compact, with lookCommitted.
func (l *compactedLog) compactCommitted(stage string) {
	l.e.Compact(l.topic, l.active())
	l.lookCommitted(stage)
}

// look asks for all that a client can learn of the log.
func (l *compactedLog) look(stage string) {
	step := func(format string, args ...any) string { return stage + ": " + fmt.Sprintf(format, args...) }
	l.batches(step("batches"))
	l.e.Call(step("the record that each offset leads to"), "Fetch v13", nil, func(context.Context) (any, error) {
		var next []int64
		for offset := range l.end + 1 {
			next = append(next, l.next(offset))
		}
		return next, nil
	})
	for _, timestamp := range []int64{-1, -2, -3, -4} {
		l.c.Do(step("timestamp %d", timestamp), 8, listOffsets(l.topic, timestamp))
	}
	for i, time := range l.times {
		for _, delta := range []int64{-1, 0, 1, 2} {
			l.c.Do(step("time of segment %d %+d", i, delta), 8, listOffsets(l.topic, time+delta))
		}
	}
	l.c.Do(step("end of epoch 0"), 4, epochEnd(l.topic, 0))
	l.c.Do(step("producers"), 0, describeProducers(l.topic, 0), sortedProducers)
}

// lookCommitted looks, too, at what a consumer of read_committed gets, from some offsets on.
func (l *compactedLog) lookCommitted(stage string) {
	l.look(stage)
	l.c.Do(stage+": the last stable offset", 8, committedEnd(l.topic, -1))
	stable := l.e.Quiet(8, committedEnd(l.topic, -1)).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
	for offset := int64(0); offset < stable; offset += 3 {
		l.consume(fmt.Sprintf("%s: read_committed from %d", stage, offset), offset, stable-1, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
}

// A storedBatch is a batch of a log, named after its base offset.
type storedBatch struct {
	Name          string
	RecordBatches []byte
}

// batches records all batches of the log. A broker may return as many at a time as it wants: they are read one by one.
func (l *compactedLog) batches(step string) {
	l.e.Call(step, "Fetch v13", nil, func(context.Context) (any, error) {
		list := []storedBatch{}
		for offset := offsetNow(l.e, l.topic, -2); ; {
			b, next := l.batchFrom(offset)
			if b == nil {
				return list, nil
			}
			list = append(list, storedBatch{fmt.Sprint(int64(binary.BigEndian.Uint64(b))), b})
			offset = next
		}
	})
}

// next is the offset of the first record from an offset on; -1: there is none.
func (l *compactedLog) next(offset int64) int64 {
	for at := offset; ; {
		b, next := l.batchFrom(at)
		if b == nil {
			return -1
		}
		for _, record := range judge.OffsetsIn(b) {
			if record >= offset {
				return record
			}
		}
		at = next
	}
}

// batchFrom is, unrecorded, the first batch from an offset on, and where it ends.
func (l *compactedLog) batchFrom(offset int64) (b []byte, next int64) {
	p := l.e.Quiet(13, batchAt(l.topic, offset)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		return nil, offset
	}
	b = p.RecordBatches
	b = b[:12+binary.BigEndian.Uint32(b[8:])]
	return b, int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[23:])) + 1
}

// batchAt fetches the one batch that a consumer at this offset is given first.
func batchAt(topic judge.Topic, offset int64) *kmsg.FetchRequest {
	p := from(0, offset)
	p.PartitionMaxBytes = 1
	return fetchPartitions(topic, p)
}

// epochEnd asks partition 0 where a leader epoch ends.
func epochEnd(topic judge.Topic, epoch int32) *kmsg.OffsetForLeaderEpochRequest {
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.LeaderEpoch, p.CurrentLeaderEpoch = epoch, -1
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic, t.Partitions = topic.Name, append(t.Partitions, p)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	return req
}

// versions reads from an offset with every version of Fetch.
func (l *compactedLog) versions(stage string, offset int64) {
	for v := int16(4); v <= 18; v++ {
		l.c.Do(fmt.Sprintf("%s: from %d, v%d", stage, offset, v), v, batchAt(l.topic, offset))
	}
}

// idempotent is a batch of a producer, of records given as pairs of key and value.
func idempotent(id int64, epoch int16, sequence int32, pairs ...string) *judge.Batch {
	return keyed(pairs...).Idempotent(id, epoch, sequence)
}

// writes appends a batch of a transaction to the active segment.
func (l *compactedLog) writes(p *compactedTxn, records ...judge.Record) {
	b := judge.NewBatch(records...).Idempotent(p.id, p.epoch, p.sequence).At(l.time).With(func(b *judge.Batch) { b.Attributes |= 0x10 })
	r := l.e.Quiet(newProduce, p.sends(part{l.topic, 0, b.Bytes()})).(*kmsg.ProduceResponse)
	if code := r.Topics[0].Partitions[0].ErrorCode; code != 0 {
		l.e.Fatalf("produce to %s by %s: %s", l.topic.Name, p.name, judge.ErrorName(code))
	}
	p.sequence += int32(len(records))
	l.end += int64(len(records))
}

// ends ends a transaction, with one marker in the log.
func (l *compactedLog) ends(p *compactedTxn, commit bool) {
	p.txnProducer, p.sequence = p.ends(l.e, commit), 0
	l.end++
}

// A compactedTxn is a transactional producer that counts its records.
type compactedTxn struct {
	txnProducer
	sequence int32
}

func newCompactedTxn(e *judge.Env, label string) *compactedTxn {
	return &compactedTxn{txnProducer: newTxn(e, label)}
}

// records is pairs of key and value as records.
func records(pairs ...string) []judge.Record { return slices.Clone(keyed(pairs...).Records) }

// numbered is a word with a number.
func numbered(word string, n int) string { return word + strconv.Itoa(n) }

// offsetNow asks, unrecorded, for the offset of a timestamp.
func offsetNow(e *judge.Env, topic judge.Topic, timestamp int64) int64 {
	return e.Quiet(8, listOffsets(topic, timestamp)).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
}

// consume reads with a client from an offset up to a record: who is in a gap goes on with the next record.
func (l *compactedLog) consume(step string, offset, last int64, opts ...kgo.Opt) {
	start := startAt(l.topic.Name, map[int32]kgo.Offset{0: kgo.NewOffset().At(offset)})
	client := l.e.Client(append(opts, kgo.FetchMaxWait(100*time.Millisecond), start)...)
	l.e.Call(step, "kgo.PollFetches", judge.Args{"From": offset, "To": last}, func(ctx context.Context) (any, error) {
		got := []judge.ClientRecord{}
		for ctx.Err() == nil && (len(got) == 0 || got[len(got)-1].Offset < last) {
			fetches := client.PollFetches(ctx)
			for r := range fetches.RecordsAll() {
				got = append(got, l.e.ClientRecordOf(r, nil))
			}
			if errs := fetches.Errors(); len(errs) > 0 {
				return got, errs[0].Err
			}
		}
		return got, ctx.Err()
	})
	client.Close()
}
