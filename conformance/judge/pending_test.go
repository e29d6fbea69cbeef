package judge

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A request that is not answered is told from one that is, and its answer is recorded where Done is called.
func TestAParkedRequestIsRecordedAsSuchAndThenByItsAnswer(t *testing.T) {
	release := make(chan struct{})
	addr := fakeBroker(t, func(key int16, correlation uint32) ([]byte, bool) {
		if key != kmsg.Heartbeat.Int16() {
			metadata := kmsg.NewPtrMetadataResponse()
			metadata.SetVersion(9)
			return respond(correlation, metadata), true
		}
		<-release
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.SetVersion(4)
		resp.ErrorCode = 27
		return respond(correlation, resp), true
	})
	e := NewEnv(t, "parked", addr, false)
	defer e.Close()
	p := e.Conn().Park("heartbeat", 4, kmsg.NewPtrHeartbeatRequest())
	close(release)
	if resp := p.Done().(*kmsg.HeartbeatResponse); resp.ErrorCode != 27 {
		t.Errorf("the answer has error code %d", resp.ErrorCode)
	}
	got := e.Exchanges()
	if len(got) != 2 || got[0].Outcome != outcomeParked || got[0].Response != nil || got[1].Outcome != "" || got[1].Response == nil {
		t.Errorf("recorded: %+v", got)
	}
}

func TestAParkedRequestThatWasAnsweredIsRecordedAsAnswered(t *testing.T) {
	addr := fakeBroker(t, func(key int16, correlation uint32) ([]byte, bool) {
		if key == kmsg.Heartbeat.Int16() {
			resp := kmsg.NewPtrHeartbeatResponse()
			resp.SetVersion(4)
			return respond(correlation, resp), true
		}
		metadata := kmsg.NewPtrMetadataResponse()
		metadata.SetVersion(9)
		return respond(correlation, metadata), true
	})
	e := NewEnv(t, "answered", addr, false)
	defer e.Close()
	p := e.Conn().Send("heartbeat", 4, kmsg.NewPtrHeartbeatRequest())
	p.Parked()
	p.Parked()
	p.Done()
	got := e.Exchanges()
	if len(got) != 3 || got[0].Outcome != "answered" || got[1].Outcome != "answered" || got[2].Response == nil {
		t.Errorf("recorded: %+v", got)
	}
}
