package handler

import (
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// describeTransactions tells of transactional ids (KafkaApis.handleDescribeTransactionsRequest).
func (h *Handler) describeTransactions(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeTransactionsRequest)
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	resp.SetVersion(req.Version)
	for _, id := range body.TransactionalIDs {
		out := kmsg.NewDescribeTransactionsResponseTransactionState()
		out.TransactionalID = id
		s, err := h.Transactions.Describe(id)
		if err != nil {
			out.ErrorCode = h.code(req, err)
		} else {
			describeTransaction(s, &out)
		}
		resp.TransactionStates = append(resp.TransactionStates, out)
	}
	return resp
}

func describeTransaction(s txn.State, out *kmsg.DescribeTransactionsResponseTransactionState) {
	out.State, out.TimeoutMillis, out.StartTimestamp = s.Phase.String(), s.TimeoutMs, s.Start
	out.ProducerID, out.ProducerEpoch = s.ProducerID, s.Epoch
	add := func(topic string, partition int32) {
		if n := len(out.Topics); n == 0 || out.Topics[n-1].Topic != topic {
			t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			t.Topic = topic
			out.Topics = append(out.Topics, t)
		}
		last := &out.Topics[len(out.Topics)-1]
		last.Partitions = append(last.Partitions, partition)
	}
	for _, p := range s.Partitions {
		add(p.Topic, p.Partition)
	}
	seen := map[int32]bool{}
	for _, g := range s.Groups {
		if p := offsetsPartition(g); !seen[p] {
			seen[p] = true
			add(offsetsTopic, p)
		}
	}
}

// Kafka keeps the offsets of groups in a topic, and names its partitions where
// a transaction has some of a group. There is none here; the names are the same.
const (
	offsetsTopic      = "__consumer_offsets"
	offsetsPartitions = 50
)

// offsetsPartition is where Kafka would keep a group's offsets (GroupCoordinator.partitionFor).
func offsetsPartition(group string) int32 {
	hash := int32(0)
	for _, c := range utf16.Encode([]rune(group)) { // String.hashCode
		hash = 31*hash + int32(c)
	}
	return hash & 0x7fffffff % offsetsPartitions
}
