package judge

import (
	"encoding/base64"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestWhatDiffersFromRunToRunIsMasked(t *testing.T) {
	m := newMasks("127.0.0.1", 4711)
	m.cluster = "some-cluster"
	first, again, other := [16]byte{1}, [16]byte{2}, [16]byte{3}
	m.learnID(first, "orders")
	m.learnID(again, "orders")
	m.learnID(other, "audit")
	now := m.start.UnixMilli()
	m.learnProducer(1000)
	m.learnProducer(2000)
	m.learnProducer(-1)
	for _, c := range []struct{ got, want any }{
		{m.id(first), "<id:orders>"},
		{m.id(again), "<id:orders#2>"},
		{m.id([16]byte{9}), "09000000000000000000000000000000"},
		{m.producer(2000), "<pid2>"},
		{m.producer(4711), int64(4711)},
		{m.producer(-1), int64(-1)},
		{m.session(77), "<session1>"},
		{m.session(78), "<session2>"},
		{m.session(77), "<session1>"},
		{m.session(0), int32(0)},
		{m.text("judge-a-0b3f1c5e-8f8c-4a1e-9d0b-1f2e3d4c5b6a"), "judge-a-<member1>"},
		{m.text("a-1b3f1c5e-8f8c-4a1e-9d0b-1f2e3d4c5b6a"), "a-<member2>"},
		{m.text("-2b3f1c5e-8f8c-4a1e-9d0b-1f2e3d4c5b6a of a-1b3f1c5e-8f8c-4a1e-9d0b-1f2e3d4c5b6a"), "-<member1> of a-<member2>"},
		{m.number(now), "<now>"},
		{m.number(now + 2*time.Hour.Milliseconds() + 300), "<now+2h>"},
		{m.number(now - time.Hour.Milliseconds()), "<now-1h>"},
		{m.number(Base), Base},
		{m.number(now + 90*time.Minute.Milliseconds()), now + 90*time.Minute.Milliseconds()},
		{m.text(fmt.Sprintf("%s of some-cluster at 127.0.0.1:4711, %d in [%d, %d]", base64.RawURLEncoding.EncodeToString(other[:]), Base, now-math.MaxInt64, now)),
			fmt.Sprintf("<id:audit> of <cluster> at <host>:<port>, %d in [<now>-max, <now>]", Base)},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestTopicIDsAreLearntWhereverTheyStandBesideTheirName(t *testing.T) {
	m := newMasks("127.0.0.1", 4711)
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.TopicID = kmsg.StringPtr("orders"), [16]byte{5}
	m.render(&kmsg.MetadataResponse{Topics: []kmsg.MetadataResponseTopic{topic}})
	if got := m.id([16]byte{5}); got != "<id:orders>" {
		t.Errorf("the id is %s", got)
	}
}
