package handler

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A txnKit makes requests of one transactional producer and returns their codes.
type txnKit struct {
	*kit
	id    string
	pid   int64
	epoch int16
}

func (k *txnKit) init() int16 {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &k.id, 60_000
	resp := ask[*kmsg.InitProducerIDResponse](k.kit, 5, req)
	if resp.ErrorCode == 0 {
		k.pid, k.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return resp.ErrorCode
}

func (k *txnKit) add(topic string) int16 {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = k.id, k.pid, k.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	return ask[*kmsg.AddPartitionsToTxnResponse](k.kit, 3, req).Topics[0].Partitions[0].ErrorCode
}

func (k *txnKit) produce(version int16, topic string, sequence int32) int16 {
	t, _ := k.Registry.Lookup(topic)
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks = &k.id, -1
	b := batch(k.t, record.Options{Producer: &record.Producer{ID: k.pid, Epoch: k.epoch, BaseSequence: sequence}, Transactional: true}, "x")
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, TopicID: t.ID(), Partitions: []kmsg.ProduceRequestTopicPartition{{Records: b}}}}
	return ask[*kmsg.ProduceResponse](k.kit, version, req).Topics[0].Partitions[0].ErrorCode
}

func (k *txnKit) addGroup() int16 {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = k.id, k.pid, k.epoch, "g"
	return ask[*kmsg.AddOffsetsToTxnResponse](k.kit, 4, req).ErrorCode
}

func (k *txnKit) stage(version int16, topic string) int16 {
	t, _ := k.Registry.Lookup(topic)
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = 5
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = k.id, "g", k.pid, k.epoch, -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, TopicID: t.ID(), Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	return ask[*kmsg.TxnOffsetCommitResponse](k.kit, version, req).Topics[0].Partitions[0].ErrorCode
}

func (k *txnKit) end(version int16, commit bool) int16 {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = k.id, k.pid, k.epoch, commit
	resp := ask[*kmsg.EndTxnResponse](k.kit, version, req)
	if resp.ErrorCode == 0 && version >= 5 {
		k.pid, k.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return resp.ErrorCode
}

// TX-4, TX-5: a transaction as clients of both kinds make it.
func TestEndTxnEndsWhatWasProduced(t *testing.T) {
	k := &txnKit{kit: newKit(t), id: "tx"}
	top := k.create("a", 1)
	wantCode(t, k.end(5, true), kerr.InvalidProducerIDMapping)
	wantCode(t, k.init(), nil)
	wantCode(t, k.end(4, true), kerr.InvalidTxnState)
	wantCode(t, k.produce(10, "a", 0), kerr.InvalidTxnState) // not added
	wantCode(t, k.produce(11, "a", 0), kerr.TransactionAbortable)
	wantCode(t, k.add("b"), kerr.UnknownTopicOrPartition)
	wantCode(t, k.add("a"), nil)
	wantCode(t, k.produce(11, "a", 0), nil)
	wantCode(t, k.stage(3, "a"), kerr.InvalidTxnState)
	wantCode(t, k.stage(4, "a"), kerr.TransactionAbortable)
	wantCode(t, k.addGroup(), nil)
	wantCode(t, k.stage(3, "a"), nil)
	wantCode(t, k.end(4, true), nil)
	wantCode(t, k.end(4, true), nil) // a repeat
	wantCode(t, k.end(4, false), kerr.InvalidTxnState)
	wantCode(t, k.produce(12, "a", 1), nil)
	wantCode(t, k.stage(6, "a"), nil)
	wantCode(t, k.end(5, false), nil)
	log, err := top.Log(0)
	check(t, err)
	if at := log.Offsets(); at.End != 4 || at.LastStable != 4 {
		t.Errorf("%+v: two records and two markers are due", at)
	}
	k.epoch--
	wantCode(t, k.produce(13, "a", 2), kerr.InvalidProducerEpoch)
	wantCode(t, k.add("a"), kerr.ProducerFenced)
	wantCode(t, k.end(1, true), kerr.InvalidProducerEpoch) // v1 knows no PRODUCER_FENCED
	wantCode(t, k.end(4, true), kerr.ProducerFenced)
	wantCode(t, k.end(5, false), nil) // a repeat, that tells the epoch again
	k.id = ""
	wantCode(t, k.init(), kerr.InvalidRequest)
	wantCode(t, k.end(5, true), kerr.InvalidRequest)
}

// TX-10: what there is of transactional ids is told, by filters.
func TestTransactionsAreListedAndDescribed(t *testing.T) {
	k := &txnKit{kit: newKit(t), id: "tx"}
	k.create("a", 1)
	wantCode(t, k.init(), nil)
	list := func(change func(*kmsg.ListTransactionsRequest)) (ids string, unknown int) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.DurationFilterMillis = -1
		change(req)
		resp := ask[*kmsg.ListTransactionsResponse](k.kit, 2, req)
		wantCode(t, resp.ErrorCode, nil)
		for _, s := range resp.TransactionStates {
			ids += s.TransactionalID + " " + s.TransactionState
		}
		return ids, len(resp.UnknownStateFilters)
	}
	wantCode(t, k.produce(12, "a", 0), nil)
	wantCode(t, k.stage(5, "a"), nil)
	for i, c := range []struct {
		want   string
		change func(*kmsg.ListTransactionsRequest)
	}{
		{"tx Ongoing", func(*kmsg.ListTransactionsRequest) {}},
		{"tx Ongoing", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing", "no such"} }},
		{"", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Empty"} }},
		{"", func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 }},
		{"", func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("x") }},
		{"", func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{k.pid + 1} }},
		{"tx Ongoing", func(r *kmsg.ListTransactionsRequest) {
			r.TransactionalIDPattern, r.ProducerIDFilters = kmsg.StringPtr("t."), []int64{k.pid}
		}},
	} {
		if got, _ := list(c.change); got != c.want {
			t.Errorf("%d: listed %q, want %q", i, got, c.want)
		}
	}
	if _, unknown := list(func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Dead", "x", "ongoing"} }); unknown != 2 {
		t.Errorf("%d states are not known", unknown)
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{"tx", "", "no"}
	states := ask[*kmsg.DescribeTransactionsResponse](k.kit, 0, req).TransactionStates
	if s := states[0]; s.State != "Ongoing" || s.ProducerID != k.pid || s.TimeoutMillis != 60_000 || len(s.Topics) != 2 ||
		s.Topics[0].Topic != "a" || s.Topics[1].Topic != "__consumer_offsets" || s.Topics[1].Partitions[0] != 'g'%50 {
		t.Errorf("%+v", s)
	}
	wantCode(t, states[1].ErrorCode, kerr.InvalidRequest)
	wantCode(t, states[2].ErrorCode, kerr.TransactionalIDNotFound)
}

// ST-60, ST-64: where meta.db can't be written, transactions answer NOT_COORDINATOR, and go on when there is room.
func TestTransactionsOnAFullDisk(t *testing.T) {
	var full error
	k := &txnKit{kit: newKitOn(t, crashfs.New(), func() error { return full }), id: "tx"}
	k.create("a", 1)
	k.create("b", 1)
	wantCode(t, k.init(), nil)
	wantCode(t, k.produce(12, "a", 0), nil)
	full = &pathErr
	wantCode(t, k.init(), kerr.NotCoordinator)
	wantCode(t, k.add("b"), kerr.NotCoordinator)
	wantCode(t, k.produce(12, "b", 0), kerr.NotEnoughReplicas)
	wantCode(t, k.addGroup(), kerr.NotCoordinator)
	wantCode(t, k.stage(6, "a"), kerr.NotCoordinator)
	wantCode(t, k.end(5, true), kerr.NotCoordinator)
	full = nil
	wantCode(t, k.produce(12, "b", 0), nil)
	wantCode(t, k.stage(6, "a"), nil)
	wantCode(t, k.end(5, true), nil)
}

// pathErr is what bbolt returns where a write finds no room.
var pathErr = fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC}
