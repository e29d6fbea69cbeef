package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// The timestamps of ListOffsets that are not times, and the versions that have them.
const (
	timestampLatest               = -1
	timestampEarliest             = -2
	timestampMax                  = -3 // v7, KIP-734
	timestampEarliestLocal        = -4 // v8, KIP-405
	timestampLatestTiered         = -5 // v9, KIP-1005
	timestampEarliestPendingStore = -6 // v11, KIP-1023
)

// notFound is the answer where there is no such offset; it is no error.
var notFound = commitlog.TimestampOffset{Offset: -1, Timestamp: -1, Epoch: noEpoch}

// listOffsets finds offsets by time and the log's ends (ReplicaManager.fetchOffset).
func (h *Handler) listOffsets(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.ListOffsetsRequest)
	l := offsetLister{h: h, req: req, iso: kafka.Isolation(body.IsolationLevel), failed: !knownIsolation(body.IsolationLevel), twice: duplicates(body)}
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.SetVersion(req.Version)
	places := make(map[string]int, len(body.Topics))
	for i := range body.Topics {
		in := &body.Topics[i]
		if len(in.Partitions) == 0 {
			continue // nothing is told of it
		}
		place, ok := places[in.Topic]
		if !ok {
			place = len(resp.Topics)
			places[in.Topic] = place
			out := kmsg.NewListOffsetsResponseTopic()
			out.Topic = in.Topic
			resp.Topics = append(resp.Topics, out)
		}
		out := &resp.Topics[place]
		for j := range in.Partitions {
			if r, ok := l.answer(in.Topic, &in.Partitions[j]); ok {
				out.Partitions = append(out.Partitions, r)
			}
		}
	}
	return resp
}

// An offsetLister answers the partitions of one ListOffsets request.
type offsetLister struct {
	h      *Handler
	req    *server.Request
	iso    kafka.Isolation
	failed bool                         // there is no such isolation level
	twice  map[kafka.TopicPartition]int // partitions that are named more than once: 1, and 0 once they are answered
}

// answer answers one partition; false for one that is answered already.
func (l *offsetLister) answer(name string, p *kmsg.ListOffsetsRequestTopicPartition) (kmsg.ListOffsetsResponseTopicPartition, bool) {
	r := kmsg.NewListOffsetsResponseTopicPartition()
	r.Partition, r.Timestamp, r.Offset = p.Partition, -1, -1
	tp := kafka.TopicPartition{Topic: name, Partition: p.Partition}
	var err error
	found := notFound
	switch times, dup := l.twice[tp]; {
	case l.failed:
		err = kerr.UnknownServerError
	case dup && times == 0:
		return r, false
	case dup:
		l.twice[tp] = 0
		err = kerr.InvalidRequest
	case unsupportedTimestamp(p.Timestamp, l.req.Version):
		err = kerr.UnsupportedVersion
	default:
		found, err = l.h.findOffset(name, p, l.iso)
	}
	if err != nil {
		r.ErrorCode = l.h.code(l.req, err)
		return r, true
	}
	r.Timestamp, r.Offset, r.LeaderEpoch = found.Timestamp, found.Offset, found.Epoch
	return r, true
}

// duplicates finds the partitions that a request names more than once; nil if there are none.
func duplicates(body *kmsg.ListOffsetsRequest) map[kafka.TopicPartition]int {
	seen := make(map[kafka.TopicPartition]bool)
	var twice map[kafka.TopicPartition]int
	for i := range body.Topics {
		for j := range body.Topics[i].Partitions {
			tp := kafka.TopicPartition{Topic: body.Topics[i].Topic, Partition: body.Topics[i].Partitions[j].Partition}
			if seen[tp] {
				if twice == nil {
					twice = make(map[kafka.TopicPartition]int)
				}
				twice[tp] = 1
			}
			seen[tp] = true
		}
	}
	return twice
}

// unsupportedTimestamp says whether a version does not have a special timestamp.
func unsupportedTimestamp(ts int64, version int16) bool {
	if ts >= 0 {
		return false
	}
	switch ts {
	case timestampLatest, timestampEarliest:
		return false
	case timestampMax:
		return version < 7
	case timestampEarliestLocal:
		return version < 8
	case timestampLatestTiered:
		return version < 9
	case timestampEarliestPendingStore:
		return version < 11
	}
	return true
}

// findOffset answers for one partition. There is no tiered storage: its
// earliest local offset is the earliest, and nothing is tiered or pending.
func (h *Handler) findOffset(name string, p *kmsg.ListOffsetsRequestTopicPartition, iso kafka.Isolation) (commitlog.TimestampOffset, error) {
	log, err := h.log(name, p.Partition)
	if err != nil {
		return notFound, err
	}
	if err := h.checkEpoch(p.CurrentLeaderEpoch); err != nil {
		return notFound, err
	}
	switch p.Timestamp {
	case timestampLatest:
		o := log.Offsets()
		end := o.HighWatermark
		if iso == kafka.ReadCommitted {
			end = o.LastStable
		}
		return commitlog.TimestampOffset{Offset: end, Timestamp: -1, Epoch: log.Epoch()}, nil
	case timestampEarliest, timestampEarliestLocal:
		epoch, err := log.EarliestEpoch()
		if err != nil {
			return notFound, err
		}
		return commitlog.TimestampOffset{Offset: log.Offsets().LogStart, Timestamp: -1, Epoch: epoch}, nil
	case timestampMax:
		return log.OffsetForMaxTimestamp(iso)
	case timestampLatestTiered, timestampEarliestPendingStore:
		return notFound, nil
	}
	return log.OffsetForTimestamp(p.Timestamp, iso)
}
