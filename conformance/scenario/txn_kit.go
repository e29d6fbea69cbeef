package scenario

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// Versions that tell a client of transaction version 2 (KIP-890) from one of before: the former adds partitions by Produce, and is given
// its next epoch by EndTxn.
const (
	oldProduce, newProduce = 11, 13
	oldEnd, newEnd         = 4, 5
)

// anotherID is a producer id that no broker has given out.
const anotherID = 1 << 40

// txnProducer is a transactional producer as the last InitProducerId or EndTxn left it.
type txnProducer struct {
	name  string // the transactional id
	id    int64
	epoch int16
}

// later is the producer some epochs on.
func (p txnProducer) later(epochs int16) txnProducer {
	p.epoch += epochs
	return p
}

// as is the producer with another producer id.
func (p txnProducer) as(id int64) txnProducer {
	p.id = id
	return p
}

// of is the producer with another transactional id.
func (p txnProducer) of(name string) txnProducer {
	p.name = name
	return p
}

// initTxn is an InitProducerId of a first instance.
func initTxn(name string) *kmsg.InitProducerIDRequest { return txnProducer{name, -1, -1}.init() }

// init is an InitProducerId of an instance that knows its id and epoch (KIP-360).
func (p txnProducer) init() *kmsg.InitProducerIDRequest {
	req := newProducer(p.id, p.epoch, 60000)
	req.TransactionalID = &p.name
	return req
}

// timeout sets the timeout of the transactions.
func timeout(req *kmsg.InitProducerIDRequest, millis int32) *kmsg.InitProducerIDRequest {
	req.TransactionTimeoutMillis = millis
	return req
}

// add is an AddPartitionsToTxn for any version: from v4 on it is a list of transactions, of this one.
func (p txnProducer) add(topic judge.Topic, partitions ...int32) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.name, p.id, p.epoch
	txn := kmsg.NewAddPartitionsToTxnRequestTransaction()
	txn.TransactionalID, txn.ProducerID, txn.ProducerEpoch = p.name, p.id, p.epoch
	req.Transactions = append(req.Transactions, txn)
	return andAdd(req, topic, partitions...)
}

// andAdd adds partitions of another topic, to the last transaction.
func andAdd(req *kmsg.AddPartitionsToTxnRequest, topic judge.Topic, partitions ...int32) *kmsg.AddPartitionsToTxnRequest {
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = topic.Name, partitions
	req.Topics = append(req.Topics, t)
	of := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
	of.Topic, of.Partitions = topic.Name, partitions
	last := &req.Transactions[len(req.Transactions)-1]
	last.Topics = append(last.Topics, of)
	return req
}

// addGroup is an AddOffsetsToTxn.
func (p txnProducer) addGroup(group string) *kmsg.AddOffsetsToTxnRequest {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.name, p.id, p.epoch, group
	return req
}

// commitOffsets is a TxnOffsetCommit of nobody's member.
func (p txnProducer) commitOffsets(group string, topic judge.Topic, offsets ...kmsg.OffsetCommitRequestTopicPartition) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = p.name, p.id, p.epoch, group, -1
	return andOffsets(req, topic, offsets...)
}

// andOffsets adds those of another topic.
func andOffsets(req *kmsg.TxnOffsetCommitRequest, topic judge.Topic, offsets ...kmsg.OffsetCommitRequestTopicPartition) *kmsg.TxnOffsetCommitRequest {
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic.Name, topic.ID
	for _, o := range offsets {
		one := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		one.Partition, one.Offset, one.LeaderEpoch, one.Metadata = o.Partition, o.Offset, o.LeaderEpoch, o.Metadata
		t.Partitions = append(t.Partitions, one)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// end is an EndTxn.
func (p txnProducer) end(commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.name, p.id, p.epoch, commit
	return req
}

// batch is a transactional batch.
func (p txnProducer) batch(sequence int32, values ...string) *judge.Batch {
	return judge.Values(values...).Idempotent(p.id, p.epoch, sequence).With(func(b *judge.Batch) { b.Attributes |= 0x10 })
}

// produce is a Produce of one transactional batch.
func (p txnProducer) produce(topic judge.Topic, partition, sequence int32, values ...string) *kmsg.ProduceRequest {
	return p.sends(part{topic, partition, p.batch(sequence, values...).Bytes()})
}

// sends is a Produce in the producer's name.
func (p txnProducer) sends(parts ...part) *kmsg.ProduceRequest {
	req := produce(-1, parts...)
	req.TransactionID = &p.name
	return req
}

// newTxn makes, unrecorded, a new transactional producer that nobody waits for.
func newTxn(e *judge.Env, label string) txnProducer {
	return again(e, txnProducer{name: e.Name(label)})
}

// again is, unrecorded, a new instance of the producer.
func again(e *judge.Env, p txnProducer) txnProducer {
	e.Await("producer id of "+p.name, func() bool {
		r := e.Quiet(4, initTxn(p.name)).(*kmsg.InitProducerIDResponse)
		p.id, p.epoch = r.ProducerID, r.ProducerEpoch
		return r.ErrorCode == 0
	})
	return p
}

// opened makes, unrecorded, a new producer whose transaction has these partitions and no records.
func opened(e *judge.Env, label string, topic judge.Topic, partitions ...int32) txnProducer {
	p := newTxn(e, label)
	p.opens(e, topic, partitions...)
	return p
}

// opens adds partitions, unrecorded, in the way of before transaction version 2.
func (p txnProducer) opens(e *judge.Env, topic judge.Topic, partitions ...int32) {
	r := e.Quiet(3, p.add(topic, partitions...)).(*kmsg.AddPartitionsToTxnResponse)
	for _, one := range r.Topics[0].Partitions {
		if one.ErrorCode != 0 {
			e.Fatalf("add %s to %s: %s", topic.Name, p.name, judge.ErrorName(one.ErrorCode))
		}
	}
}

// writes produces, unrecorded, and adds the partition by that.
func (p txnProducer) writes(e *judge.Env, topic judge.Topic, partition, sequence int32, values ...string) {
	r := e.Quiet(newProduce, p.produce(topic, partition, sequence, values...)).(*kmsg.ProduceResponse)
	if code := r.Topics[0].Partitions[0].ErrorCode; code != 0 {
		e.Fatalf("produce to %s by %s: %s", topic.Name, p.name, judge.ErrorName(code))
	}
}

// ends ends the transaction, unrecorded, and returns the producer as it goes on from there once the transaction is complete.
func (p txnProducer) ends(e *judge.Env, commit bool) txnProducer {
	r := e.Quiet(newEnd, p.end(commit)).(*kmsg.EndTxnResponse)
	if r.ErrorCode != 0 {
		e.Fatalf("end the transaction of %s: %s", p.name, judge.ErrorName(r.ErrorCode))
	}
	awaitComplete(e, p.name)
	p.id, p.epoch = r.ProducerID, r.ProducerEpoch
	return p
}

// doEnd is a recorded EndTxn of which the next step does not see that Kafka answers before the markers are written.
func (p txnProducer) doEnd(e *judge.Env, c *judge.Conn, step string, version int16, commit bool) txnProducer {
	r := c.Do(step, version, p.end(commit)).(*kmsg.EndTxnResponse)
	awaitComplete(e, p.name)
	if version >= newEnd && r.ErrorCode == 0 {
		p.id, p.epoch = r.ProducerID, r.ProducerEpoch
	}
	return p
}

// awaitComplete returns once the transaction neither is prepared nor has a transition under way: Kafka answers before that.
func awaitComplete(e *judge.Env, name string) {
	awaitTxn(e, name, "Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "")
}

// awaitTxn returns once the transactional id is in one of these states.
func awaitTxn(e *judge.Env, name string, states ...string) {
	e.Await("the transaction of "+name, func() bool { return slices.Contains(states, txnState(e, name)) })
}

// txnState asks, unrecorded, for the state of a transactional id; "" is of none.
func txnState(e *judge.Env, name string) string {
	return e.Quiet(0, describeTxn(name)).(*kmsg.DescribeTransactionsResponse).TransactionStates[0].State
}

func describeTxn(names ...string) *kmsg.DescribeTransactionsRequest {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = names
	return req
}

// describeProducers is a DescribeProducers of partitions of one topic.
func describeProducers(topic judge.Topic, partitions ...int32) *kmsg.DescribeProducersRequest {
	req := kmsg.NewPtrDescribeProducersRequest()
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = topic.Name, partitions
	req.Topics = append(req.Topics, t)
	return req
}

// sortedProducers is for responses in the order of Kafka's hash maps.
var sortedProducers = judge.Sorted("Topics", "Partitions", "ActiveProducers", "TransactionStates", "Transactions", "UnknownStateFilters")

// committedFetch reads partitions of a topic as a consumer of read_committed.
func committedFetch(topic judge.Topic, partitions ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	req := fetchPartitions(topic, partitions...)
	req.IsolationLevel = 1
	return req
}

// committedEnd asks for the end of partition 0 as a consumer of read_committed does: the last stable offset.
func committedEnd(topic judge.Topic, timestamp int64) *kmsg.ListOffsetsRequest {
	req := listOffsets(topic, timestamp)
	req.IsolationLevel = 1
	return req
}
