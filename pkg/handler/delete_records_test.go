package handler

import (
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// deleteTo asks for partitions of one topic, in order, to begin at offsets.
func deleteTo(name string, offsets ...int64) *kmsg.DeleteRecordsRequest {
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = name
	for i, o := range offsets {
		t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: int32(i), Offset: o})
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, t)
	return req
}

// wantDeleted sends a request for partition 0 of a topic alone.
func (k *kit) wantDeleted(version int16, name string, offset, low int64, want *kerr.Error) {
	k.t.Helper()
	got := ask[*kmsg.DeleteRecordsResponse](k, version, deleteTo(name, offset)).Topics[0].Partitions[0]
	wantCode(k.t, got.ErrorCode, want)
	if got.LowWatermark != low {
		k.t.Fatalf("low watermark %d, want %d", got.LowWatermark, low)
	}
}

// ST-35: the start moves to an offset within a batch, to the end for -1, never back, and stays there over a restart.
func TestDeleteRecordsMovesTheStart(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "x", "y", "z")
	k.append("a", 0, "1", "2", "3", "4")
	k.eachVersion(kmsg.DeleteRecords, func(t *testing.T, version int16) {
		start := int64(version) + 1
		k.wantDeleted(version, "a", start, start, nil)
		k.wantDeleted(version, "a", 0, start, nil)
		k.wantDeleted(version, "a", 8, -1, kerr.OffsetOutOfRange)
		k.wantDeleted(version, "a", -2, -1, kerr.OffsetOutOfRange)
	})
	k.restart()
	k.wantDeleted(2, "a", 0, 3, nil)
	k.wantDeleted(2, "a", -1, 7, nil)
	if base := k.append("a", 0, "more"); base != 7 {
		t.Errorf("the next record is at %d", base)
	}
}

// The last offset of a partition that is named twice counts; what can't be done keeps nothing else from being done.
func TestDeleteRecordsAnswersEachPartitionOnce(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	k.create("compacted", 1, "cleanup.policy", "compact")
	k.append("a", 0, "x", "y", "z")
	req := deleteTo("a", 3, 5, 0)
	req.Topics = append(req.Topics, deleteTo("none", 1).Topics[0], deleteTo("empty").Topics[0], deleteTo("compacted", 0).Topics[0], deleteTo("a", 2).Topics[0])
	got := ask[*kmsg.DeleteRecordsResponse](k, 2, req).Topics
	if len(got) != 3 || len(got[0].Partitions) != 3 {
		t.Fatalf("%+v", got)
	}
	if low := got[0].Partitions[0].LowWatermark; low != 2 {
		t.Errorf("low watermark %d", low)
	}
	wantCode(t, got[0].Partitions[0].ErrorCode, nil)
	wantCode(t, got[0].Partitions[1].ErrorCode, kerr.OffsetOutOfRange)
	wantCode(t, got[0].Partitions[2].ErrorCode, kerr.UnknownTopicOrPartition)
	wantCode(t, got[1].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
	wantCode(t, got[2].Partitions[0].ErrorCode, kerr.PolicyViolation)
}

// ST-35: one commit for all partitions of a request.
func TestDeleteRecordsCommitsOnce(t *testing.T) {
	var commits atomic.Int64
	k := newKitOn(t, crashfs.New(), func() error { commits.Add(1); return nil })
	k.create("a", 5)
	for p := range int32(5) {
		k.append("a", p, "x")
	}
	before := commits.Load()
	ask[*kmsg.DeleteRecordsResponse](k, 2, deleteTo("a", 1, -1, 1, 1, 0))
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	before = commits.Load()
	ask[*kmsg.DeleteRecordsResponse](k, 2, deleteTo("a", 1, -1, 0, 1, 0))
	if n := commits.Load() - before; n != 0 {
		t.Errorf("%d commits for starts that do not move", n)
	}
}

// ST-60: a full disk refuses with KAFKA_STORAGE_ERROR, nothing has moved, and once there is room it goes on.
func TestDeleteRecordsOnAFullDisk(t *testing.T) {
	var full atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if full.Load() {
			return &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC}
		}
		return nil
	})
	k.create("a", 1)
	k.append("a", 0, "x", "y")
	full.Store(true)
	k.wantDeleted(2, "a", 1, -1, kerr.KafkaStorageError)
	log, err := k.Handler.log("a", 0)
	check(t, err)
	if start := log.Offsets().LogStart; start != 0 {
		t.Errorf("the start has moved to %d", start)
	}
	full.Store(false)
	k.wantDeleted(2, "a", 1, 1, nil)
}

// ST-61: what can't be made durable is not deleted either.
func TestDeleteRecordsOfAPartitionThatIsOffline(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "x", "y")
	k.disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Times: 1})
	k.wantDeleted(2, "a", 1, -1, kerr.KafkaStorageError)
	k.wantDeleted(2, "a", 1, -1, kerr.KafkaStorageError)
}
