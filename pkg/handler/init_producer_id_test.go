package handler

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

func TestInitProducerIDGivesAFreshID(t *testing.T) {
	k := newKit(t)
	next := int64(0)
	k.eachVersion(kmsg.InitProducerID, func(t *testing.T, version int16) {
		resp := ask[*kmsg.InitProducerIDResponse](k, version, kmsg.NewPtrInitProducerIDRequest())
		wantCode(t, resp.ErrorCode, nil)
		if resp.ProducerID != next || resp.ProducerEpoch != 0 {
			t.Fatalf("id %d epoch %d, want %d 0", resp.ProducerID, resp.ProducerEpoch, next)
		}
		next++
	})
	// An id that the client has already is not looked at without a transactional id.
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = 0, 0
	if resp := ask[*kmsg.InitProducerIDResponse](k, 5, req); resp.ProducerID != next || resp.ErrorCode != 0 {
		t.Fatalf("%+v, want id %d", resp, next)
	}
}

func TestInitProducerIDRefuses(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.InitProducerID, func(t *testing.T, version int16) {
		for _, c := range []struct {
			id    *string
			pid   int64
			epoch int16
			want  *kerr.Error
			since int16
		}{
			{kmsg.StringPtr(""), -1, -1, kerr.InvalidRequest, 0},
			{nil, 5, -1, kerr.InvalidRequest, 3},
			{nil, -1, 5, kerr.InvalidRequest, 3},
		} {
			if version < c.since {
				continue
			}
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch = c.id, c.pid, c.epoch
			resp := ask[*kmsg.InitProducerIDResponse](k, version, req)
			wantCode(t, resp.ErrorCode, c.want)
			if resp.ProducerID != -1 || resp.ProducerEpoch != -1 {
				t.Fatalf("%+v", resp)
			}
		}
	})
}

// ST-64: a disk that takes no block is a clear error.
func TestInitProducerIDOnAFailingStore(t *testing.T) {
	var failing atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if failing.Load() {
			return errors.New("disk on fire")
		}
		return nil
	})
	failing.Store(true)
	resp := ask[*kmsg.InitProducerIDResponse](k, 5, kmsg.NewPtrInitProducerIDRequest())
	wantCode(t, resp.ErrorCode, kerr.KafkaStorageError)
	if resp.ProducerID != -1 {
		t.Fatalf("%+v", resp)
	}
}
