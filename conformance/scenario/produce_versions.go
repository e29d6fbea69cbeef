package scenario

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.Register("produce-versions", produceVersions)

// produceVersions (ST-15) asks every version of Produce with each acks, and with a topic that is not there.
func produceVersions(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	none := judge.Topic{Name: e.Name("none"), ID: unknownID}
	c := e.Conn()
	for v := range int16(15) {
		for _, acks := range []int16{1, -1, 0} {
			c.Do(fmt.Sprintf("v%d acks=%d", v, acks), v, one(acks, topic, judge.Values("a", "b")))
		}
		c.Do(fmt.Sprintf("v%d unknown topic", v), v, one(1, none, judge.Values("a")))
		c.Do(fmt.Sprintf("v%d unknown partition", v), v, produce(1, part{topic, 2, judge.Values("a").Bytes()}))
		c.Do(fmt.Sprintf("v%d wrong checksum", v), v, one(1, topic, judge.Values("a").With(func(b *judge.Batch) { b.CRCXor = 1 })))
		c.Do(fmt.Sprintf("v%d invalid record count", v), v, one(1, topic, judge.Values("a").With(func(b *judge.Batch) { b.Count = 2 })))
	}
	c.Do("end offset", 7, listOffsets(topic, -1))
	c.Do("start of the log", 13, fetch(topic, 0), judge.Sorted())
}
