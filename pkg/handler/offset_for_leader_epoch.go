package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// noEpoch is the leader epoch of a client that does not know or care.
const noEpoch int32 = -1

// checkEpoch compares a client's leader epoch with the partition's (KIP-320). Offsets are looked at only after it.
func (h *Handler) checkEpoch(epoch int32) error {
	switch {
	case epoch == noEpoch || epoch == h.Epoch:
		return nil
	case epoch < h.Epoch:
		return kerr.FencedLeaderEpoch
	}
	return kerr.UnknownLeaderEpoch
}

// log finds the log of a partition by the topic's name. UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
func (h *Handler) log(name string, partition int32) (*commitlog.Log, error) {
	t, ok := h.Registry.Lookup(name)
	if !ok {
		return nil, kerr.UnknownTopicOrPartition
	}
	return t.Log(partition)
}

// offsetForLeaderEpoch tells where an epoch ended, so that a consumer finds
// out what an unclean cut took from it (KIP-320, ST-57; ReplicaManager.lastOffsetForLeaderEpoch).
func (h *Handler) offsetForLeaderEpoch(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.OffsetForLeaderEpochRequest)
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	resp.SetVersion(req.Version)
	resp.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(body.Topics))
	for i := range body.Topics {
		in, out := &body.Topics[i], &resp.Topics[i]
		out.Default()
		out.Topic = in.Topic
		out.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(in.Partitions))
		for j := range in.Partitions {
			p, r := &in.Partitions[j], &out.Partitions[j]
			r.Default()
			r.Partition = p.Partition
			epoch, end, err := h.endOffset(in.Topic, p)
			if err != nil {
				r.ErrorCode = h.code(req, err)
				epoch, end = -1, -1
			}
			r.LeaderEpoch, r.EndOffset = epoch, end
		}
	}
	return resp
}

func (h *Handler) endOffset(name string, p *kmsg.OffsetForLeaderEpochRequestTopicPartition) (epoch int32, end int64, err error) {
	log, err := h.log(name, p.Partition)
	if err != nil {
		return 0, 0, err
	}
	if err := h.checkEpoch(p.CurrentLeaderEpoch); err != nil {
		return 0, 0, err
	}
	return log.EndOffsetForEpoch(p.LeaderEpoch)
}
