package scenario

import (
	"fmt"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.RegisterOwn("groups-long-names", groupsBroker, groupsLongNames)

// groupsLongNames has group ids as long as a key of ours may be, longer, and as long as the protocol's strings.
func groupsLongNames(e *judge.Env) {
	c := e.Conn()
	topic := e.CreateTopic("topic", 1)
	for _, n := range []int{16 << 10, 16<<10 + 1, 32767} {
		group := strings.Repeat("g", n)
		groupsReady(e, named(e, fmt.Sprint("ready-", n)))
		c.Do(fmt.Sprintf("%d bytes: OffsetCommit", n), 8, commit(group, topic.Name, 0, 5))
		c.Do(fmt.Sprintf("%d bytes: OffsetFetch", n), 7, committed(group, &topic, 0))
		c.Do(fmt.Sprintf("%d bytes: JoinGroup", n), 4, join(group, ""))
		c.Do(fmt.Sprintf("%d bytes: Heartbeat", n), 4, heartbeat(group, "nobody", 1))
	}
}
