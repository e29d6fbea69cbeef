package judge

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cleaner is how a scenario has the log cleaner of its broker work.
type Cleaner struct {
	// Control is the host:port of our broker's control API; "" is Kafka's.
	Control string
	// FirstDirty is up to where Kafka's cleaner has been in partition 0 of a topic; -1: it has not been there.
	FirstDirty func(topic string) int64
}

// CanCompact gives the scenario the cleaner of a broker of its own.
func (e *Env) CanCompact(c Cleaner) { e.cleaner = &c }

// DirtyRatio is the config that keeps the cleaner from a topic while it is 1: no log is dirtier than that.
const DirtyRatio = "min.cleanable.dirty.ratio"

// Compact has the cleaner make one pass over partition 0 of a topic whose DirtyRatio is 1, unrecorded: over all below the offset to, where the
// first segment begins that must not be compacted. Kafka's goes only where something is dirty: there has to be a segment that no pass has seen.
func (e *Env) Compact(topic Topic, to int64) {
	e.t.Helper()
	if e.cleaner == nil {
		e.Fatalf("only the cleaner of a broker of the scenario's own can be waited for: RegisterOwn")
	}
	if !e.IsKafka {
		e.post("/v1/topics/" + topic.Name + "/compact")
		return
	}
	if e.cleaner.FirstDirty(topic.Name) == to {
		e.Fatalf("%s has nothing dirty below %d: Kafka's cleaner would not come", topic.Name, to)
	}
	e.Configure(topic.Name, DirtyRatio, "0")
	e.Await(fmt.Sprintf("the cleaner of %s to come to %d", topic.Name, to), func() bool { return e.cleaner.FirstDirty(topic.Name) == to })
	e.Configure(topic.Name, DirtyRatio, "1")
}

func (e *Env) post(path string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, "http://"+e.cleaner.Control+path, nil)
	if err != nil {
		e.Fatalf("%v", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.Fatalf("%v", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		e.Fatalf("POST %s: %s %s %v", path, resp.Status, body, err)
	}
}

// Configure sets configs of a topic, pairs of name and value, unrecorded, and returns once they have their effect. In Kafka a
// change is shown before the logs have it, and they have it before the next change is shown: flush.ms is changed last.
func (e *Env) Configure(topic string, configs ...string) {
	e.t.Helper()
	e.alter(topic, configs...)
	e.alter(topic, "flush.ms", strconv.FormatInt(time.Now().UnixNano(), 10))
}

func (e *Env) alter(topic string, configs ...string) {
	e.t.Helper()
	change := kmsg.NewIncrementalAlterConfigsRequestResource()
	change.ResourceType, change.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		change.Configs = append(change.Configs, c)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, change)
	if r := e.Quiet(1, req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; r.ErrorCode != 0 {
		e.Fatalf("alter %v of %s: %s %v", configs, topic, ErrorName(r.ErrorCode), r.ErrorMessage)
	}
	name, value := configs[len(configs)-2], configs[len(configs)-1]
	ask := kmsg.NewPtrDescribeConfigsRequest()
	ask.Resources = append(ask.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name}})
	e.Await(name+" of "+topic, func() bool {
		configs := e.Quiet(4, ask).(*kmsg.DescribeConfigsResponse).Resources[0].Configs
		return len(configs) == 1 && configs[0].Value != nil && (*configs[0].Value == value || *configs[0].Value == value+".0")
	})
}
