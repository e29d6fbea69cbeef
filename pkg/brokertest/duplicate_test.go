package brokertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-55: a batch that was sent with acks=1 lies in the page cache when its repeat comes with acks=all, before or after a kill, or two. The repeat is answered
// with the offset of the first, and what it promises outlives a power cut, whatever else survives.
func TestARepeatIsAcknowledgedOnceItIsDurable(t *testing.T) {
	for kills := range 3 {
		for _, survival := range crashfs.Survivals(1, 4) {
			t.Run(fmt.Sprintf("%d kills, %s", kills, survival), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := brokertest.Start(t, func(s *config.Settings) { s.FsyncInterval = 0 })
					p := newPeer(t, b)
					w := newWorld()
					w.producer = p.producerID()
					topic := w.newTopic("a", 1)
					var err error
					topic.id, err = p.create("a", 1)
					noError(t, err)
					w.Promise(topicFacts("a", 1))
					w.topics["a"] = topic
					first, batch := w.next(t, "a", 0, 3)
					noError(t, w.Ack(first, p.produce("a", topic.id, 1, [][]byte{batch})[0], false))
					for range kills {
						s, err := b.Snapshot()
						noError(t, err)
						b = s.Kill(t)
					}
					p = newPeer(t, b)
					noError(t, w.Ack(first, p.produce("a", topic.id, -1, [][]byte{batch})[0], true))
					b = b.PowerCut(survival)
					c := w.Check(history.PowerCut)
					newPeer(t, b).read(c, "a", topic.id, 0)
					noError(t, c.Err())
				})
			})
		}
	}
}
