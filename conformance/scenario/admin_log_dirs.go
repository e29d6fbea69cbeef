package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// A broker of its own: all there is is asked for.
var _ = judge.RegisterOwn("describe-log-dirs", target.Options{}, describeLogDirs)

// describeLogDirs asks every version for the sizes of partitions, some and all.
func describeLogDirs(e *judge.Env) {
	c := e.Conn()
	dirs := func(topics ...kmsg.DescribeLogDirsRequestTopic) *kmsg.DescribeLogDirsRequest {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = topics
		return req
	}
	of := func(name string, partitions ...int32) kmsg.DescribeLogDirsRequestTopic {
		return kmsg.DescribeLogDirsRequestTopic{Topic: name, Partitions: partitions}
	}
	do := func(step string, v int16, req *kmsg.DescribeLogDirsRequest) {
		c.Do(fmt.Sprintf("v%d %s", v, step), v, req, judge.Sorted("Topics", "Partitions"), judge.Hidden("Dir", "TotalBytes", "UsableBytes"))
	}
	none := e.Name("none")
	for v := int16(1); v <= 5; v++ {
		do("there are no topics", v, dirs())
	}
	a, b := e.CreateTopic("a", 3), e.CreateTopic("b", 1)
	produced(e, a, 0, judge.Values("x"), judge.Values(strings.Repeat("y", 1000)))
	produced(e, a, 2, judge.Values("z"))
	for v := int16(1); v <= 5; v++ {
		do("all", v, dirs())
		empty := dirs()
		empty.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		do("an empty list", v, empty)
		do("some", v, dirs(of(a.Name, 2, 0), of(none, 0)))
		do("partitions that there are not", v, dirs(of(b.Name, 0, 1, -1), of(a.Name, 7)))
		do("no partitions", v, dirs(of(a.Name)))
		do("twice", v, dirs(of(a.Name, 0, 0), of(b.Name, 0), of(a.Name, 0, 1)))
	}
	e.Restart()
	c = e.Conn()
	do("all, after a restart", 5, dirs())
}
