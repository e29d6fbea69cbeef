package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// What a request's version means for a transaction (AddPartitionsToTxnManager).
const (
	produceAbortable int16 = 11 // the client knows TRANSACTION_ABORTABLE
	produceAdds      int16 = 12 // the request itself puts its partitions into the transaction (KIP-890)
)

// enterTransaction has the coordinator vouch for the transactional batches of
// the request, all partitions with one commit of the transaction's row at
// most. Those that it refuses are marked. leave is called once the others are in the log.
func (c *produceCall) enterTransaction(ctx context.Context) (leave func()) {
	var partitions []txn.Partition
	var p txn.Producer
	for i := range c.appends {
		job := &c.appends[i]
		if !job.batch.Transactional() || job.batch.ProducerID() < 0 {
			continue
		}
		if job.refused = unvouched(job); job.refused != nil {
			continue
		}
		p = txn.Producer{ID: *c.body.TransactionID, ProducerID: job.batch.ProducerID(), Epoch: job.batch.ProducerEpoch()}
		partitions = append(partitions, txn.Partition{Topic: job.topic.Name(), TopicID: job.topic.ID(), Partition: job.out.Partition})
	}
	if len(partitions) == 0 {
		return func() {}
	}
	verified := producer.VerifiedInTxn
	if c.body.Version >= produceAdds {
		verified = producer.AddedByProduce
	}
	leave, errs, err := c.h.Transactions.Enter(ctx, p, partitions, c.body.Version >= produceAdds)
	next := 0
	for i := range c.appends {
		job := &c.appends[i]
		if !job.batch.Transactional() || job.batch.ProducerID() < 0 || job.refused != nil {
			continue
		}
		if err != nil {
			job.refused = refusedByCoordinator(c.body.Version, err)
		} else if errs != nil && errs[next] != nil {
			job.refused = refusedByCoordinator(c.body.Version, errs[next])
		} else {
			job.verified = verified
		}
		next++
	}
	if leave == nil {
		return func() {}
	}
	return leave
}

// unvouched refuses a batch of an epoch that the partition knows to be over, before the coordinator is asked.
func unvouched(job *appendJob) error {
	log, err := job.topic.Log(job.out.Partition)
	if err != nil {
		return err
	}
	_, err = log.Unvouched(job.batch.ProducerID(), job.batch.ProducerEpoch())
	return err
}

// refusedByCoordinator is what a Produce tells of an error of the coordinator
// (ReplicaManager.handleProduceAppend, AddPartitionsToTxnManager).
func refusedByCoordinator(version int16, err error) error {
	const unable = "Unable to verify the partition has been added to the transaction. Underlying error: %s"
	code := kafka.ErrorCode(err)
	switch {
	case code == kerr.ProducerFenced.Code:
		return kerr.InvalidProducerEpoch
	case code == kerr.TransactionAbortable.Code && version < produceAbortable:
		return kafka.Errorf(kerr.InvalidTxnState, "Partition was not added to the transaction")
	case code == kerr.NotCoordinator.Code, code == kerr.CoordinatorNotAvailable.Code,
		code == kerr.ConcurrentTransactions.Code && version < produceAdds:
		return kafka.Errorf(kerr.NotEnoughReplicas, unable, kerr.TypedErrorForCode(code).Message)
	}
	return err
}
