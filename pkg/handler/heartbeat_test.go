package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-1.
func TestHeartbeatOfAMemberAndOfOthers(t *testing.T) {
	k := newKit(t, atOnceComplete)
	id, generation := k.member("g")
	k.eachVersion(kmsg.Heartbeat, func(t *testing.T, version int16) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = "g", id, generation
		wantCode(t, ask[*kmsg.HeartbeatResponse](k, version, req).ErrorCode, nil)
		req.Generation++
		wantCode(t, ask[*kmsg.HeartbeatResponse](k, version, req).ErrorCode, kerr.IllegalGeneration)
		req.Generation, req.InstanceID = generation, kmsg.StringPtr("one")
		if version >= 3 {
			wantCode(t, ask[*kmsg.HeartbeatResponse](k, version, req).ErrorCode, kerr.UnknownMemberID)
		}
		req.Group = ""
		wantCode(t, ask[*kmsg.HeartbeatResponse](k, version, req).ErrorCode, kerr.InvalidGroupID)
	})
}
