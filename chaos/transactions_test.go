package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The topic of transactions, and how many producers write to all of its partitions.
const (
	exactly           = "exactly"
	exactlyPartitions = 3
	exactlyProducers  = 2
)

// makeExactly makes the topic of transactions. It is no part of the history, which knows of none.
func (r *run) makeExactly() error {
	p := r.peer()
	defer p.close()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	segment := "65536"
	t.Topic, t.NumPartitions, t.ReplicationFactor = exactly, exactlyPartitions, 1
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "internal.segment.bytes", Value: &segment}}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	resp, _, err := ask[*kmsg.CreateTopicsResponse](p, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// What is known of a transaction.
type outcome int

const (
	inDoubt outcome = iota // its commit was not answered
	committed
	aborted
)

// transactions is what became of every transaction, by its value: "<producer> <number>".
type transactions struct {
	mu   sync.Mutex
	what map[string]outcome
}

func (x *transactions) set(value string, o outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.what == nil {
		x.what = map[string]outcome{}
	}
	x.what[value] = o
}

// A transactor makes transactions of one record on each partition, through the kills.
type transactor struct {
	*run
	x      *transactions
	id     int
	number int
}

func (p *transactor) open() *kgo.Client {
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.addr), kgo.TransactionalID("chaos-"+strconv.Itoa(p.id)), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.RequestRetries(100_000),
		kgo.RetryTimeout(2*time.Minute), kgo.MetadataMinAge(50*time.Millisecond))
	p.fail(err)
	return cl
}

// work goes on with a new client, which fences the one before, where a
// transaction can be neither committed nor aborted any more.
func (p *transactor) work(stop <-chan struct{}) {
	for !over(stop) && p.ctx.Err() == nil {
		cl := p.open()
		if cl == nil {
			return
		}
		for !over(stop) && p.transaction(cl) {
			p.did("transactions")
		}
		cl.Close()
	}
}

// transaction makes one; false: the client is of no more use.
func (p *transactor) transaction(cl *kgo.Client) bool {
	value := fmt.Sprintf("%d %d", p.id, p.number)
	p.number++
	if err := cl.BeginTransaction(); err != nil {
		return false
	}
	p.x.set(value, aborted)
	var records []*kgo.Record
	for i := range int32(exactlyPartitions) {
		records = append(records, &kgo.Record{Topic: exactly, Partition: i, Value: []byte(value)})
	}
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	err := cl.ProduceSync(ctx, records...).FirstErr()
	commit := err == nil && p.number%4 != 0
	if commit {
		p.x.set(value, inDoubt)
	}
	settle(cl)
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return false
	}
	if commit {
		p.x.set(value, committed)
	}
	return err == nil
}

// settle waits until the client has finished its update of metadata. franz-go 1.22.3 sends the first records for a topic before it has stored
// the topic's partitions, and a transaction that is ended in between counts as one without records: nothing is sent, and no error comes.
func settle(cl *kgo.Client) { cl.PurgeTopicsFromProducing("no topic") }

// verifyTransactions wants each transaction wholly in or wholly out, as its
// client knows it, those of a producer in order and each once (ST-73). Open ones are fenced first.
func (r *run) verifyTransactions(x *transactions) error {
	for id := range exactlyProducers {
		p := &transactor{run: r, x: &transactions{}, id: id, number: 1_000_000}
		cl := p.open()
		err := cl.BeginTransaction()
		if err == nil {
			err = cl.ProduceSync(r.ctx, &kgo.Record{Topic: exactly, Value: []byte("end")}).FirstErr()
			settle(cl)
			err = errors.Join(err, cl.EndTransaction(r.ctx, kgo.TryAbort))
		}
		cl.Close()
		if err != nil {
			return fmt.Errorf("the producer after all others: %w", err)
		}
	}
	var seen [exactlyPartitions]map[string]int
	for i := range seen {
		var err error
		if seen[i], err = r.readCommitted(int32(i)); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for value, o := range x.what {
		in := 0
		for i := range seen {
			in += seen[i][value]
			delete(seen[i], value)
		}
		if o == inDoubt && in == exactlyPartitions {
			o = committed
		}
		if o == committed && in != exactlyPartitions || o != committed && in != 0 {
			errs = append(errs, fmt.Errorf("transaction %q (outcome %d) is seen %d times in %d partitions", value, o, in, exactlyPartitions))
		}
	}
	for i := range seen {
		for value := range seen[i] {
			errs = append(errs, fmt.Errorf("%s-%d has %q, of no transaction", exactly, i, value))
		}
	}
	return errors.Join(errs[:min(len(errs), 10)]...)
}

// readCommitted counts the values of a partition to its last stable offset, and wants those of each producer in order.
func (r *run) readCommitted(part int32) (map[string]int, error) {
	_, end, err := r.peer().bounds(exactly, part)
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{exactly: {part: kgo.NewOffset().At(0)}}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	values, last := map[string]int{}, map[string]int{}
	for next := int64(0); next < end; {
		f := cl.PollFetches(r.ctx)
		if err := f.Err(); err != nil {
			return nil, fmt.Errorf("read %s-%d at %d of %d: %w", exactly, part, next, end, err)
		}
		f.EachRecord(func(rec *kgo.Record) {
			next = rec.Offset + 1
			if rec.Attrs.IsControl() {
				return
			}
			values[string(rec.Value)]++
			by, n, _ := strings.Cut(string(rec.Value), " ")
			number, _ := strconv.Atoi(n)
			if before, ok := last[by]; ok && number <= before {
				err = fmt.Errorf("%s-%d has transaction %d of producer %s after %d", exactly, part, number, by, before)
			}
			last[by] = number
		})
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}
