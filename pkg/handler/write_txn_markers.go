package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// writeTxnMarkers ends transactions on single partitions, past the coordinator:
// that is how kafka-transactions aborts one that hangs
// (KafkaApis.handleWriteTxnMarkersRequest). The answer comes when the markers are on the disk.
func (h *Handler) writeTxnMarkers(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.WriteTxnMarkersRequest)
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	resp.SetVersion(req.Version)
	type wait struct {
		log  *commitlog.Log
		end  int64
		code *int16
	}
	var waits []wait
	for i := range body.Markers {
		in := &body.Markers[i]
		if len(in.Topics) == 0 {
			continue // it is not answered
		}
		out := kmsg.NewWriteTxnMarkersResponseMarker()
		out.ProducerID = in.ProducerID
		for _, t := range in.Topics {
			topic := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			topic.Topic = t.Topic
			topic.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(t.Partitions))
			for j, n := range t.Partitions {
				p := &topic.Partitions[j]
				*p = kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				p.Partition = n
				log, end, err := h.writeMarker(in, t.Topic, n)
				if err != nil {
					p.ErrorCode = h.code(req, err)
					continue
				}
				log.StartFlush(end)
				waits = append(waits, wait{log, end, &p.ErrorCode})
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	for _, w := range waits {
		// Without it a power cut could bring the hanging transaction back.
		if err := w.log.AwaitFlushed(ctx, w.end); err != nil {
			*w.code = h.code(req, err)
		}
	}
	return resp
}

func (h *Handler) writeMarker(in *kmsg.WriteTxnMarkersRequestMarker, name string, partition int32) (*commitlog.Log, int64, error) {
	t, ok := h.Registry.Lookup(name)
	if !ok {
		return nil, 0, kerr.UnknownTopicOrPartition
	}
	if in.ProducerID < 0 || in.ProducerEpoch < 0 { // EndTransactionMarker: an IllegalArgumentException
		return nil, 0, kerr.UnknownServerError
	}
	log, err := t.Log(partition)
	if err != nil {
		return nil, 0, err
	}
	a, err := log.AppendMarker(commitlog.Marker{
		ProducerID: in.ProducerID, Epoch: in.ProducerEpoch, Commit: in.Committed,
		CoordinatorEpoch: in.CoordinatorEpoch, Bumped: in.TransactionVersion >= 2,
	})
	return log, a.End, err
}
