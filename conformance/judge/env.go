// Package judge asks two brokers the same and compares what they say. A scenario (package scenario) is a function that sends requests; run
// against Apache Kafka it makes a recording, run against our broker it is compared with that recording, field by field.
package judge

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Env is what a scenario gets: connections to the broker, and topics of its own.
type Env struct {
	Addr string // host:port of the broker
	// IsKafka says that the broker is Apache Kafka. Nothing that is sent may depend on it; it is for waits alone.
	IsKafka bool

	restart   func()
	cleaner   *Cleaner
	t         testing.TB
	scenario  string
	masks     *masks
	exchanges []Exchange
	steps     map[string]bool
	conns     []*Conn
	quiet     *Conn
}

// NewEnv is for one run of a scenario against the broker at addr.
func NewEnv(t testing.TB, scenario, addr string, isKafka bool) *Env {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Addr: addr, IsKafka: isKafka, t: t, scenario: scenario, masks: newMasks(host, int32(p)), steps: map[string]bool{}}
	e.quiet = e.Conn()
	e.quiet.quiet = true
	resp := e.Quiet(9, kmsg.NewPtrMetadataRequest()).(*kmsg.MetadataResponse)
	if resp.ClusterID != nil {
		e.masks.cluster = *resp.ClusterID
	}
	return e
}

// Close ends the connections.
func (e *Env) Close() {
	for _, c := range e.conns {
		c.Close()
	}
}

// CanRestart gives the scenario a way to restart the broker. It has one of its own then.
func (e *Env) CanRestart(restart func()) { e.restart = restart }

// Restart stops the broker in order and starts it on the same data. Connections are dialled again at their next use.
func (e *Env) Restart() {
	e.t.Helper()
	if e.restart == nil {
		e.Fatalf("only a broker of the scenario's own can be restarted: RegisterOwn")
	}
	e.Close()
	e.restart()
}

// Exchanges are those recorded so far.
func (e *Env) Exchanges() []Exchange { return e.exchanges }

func (e *Env) record(x Exchange) {
	e.t.Helper()
	if e.steps[x.Step] {
		e.Fatalf("two steps are named %q", x.Step)
	}
	e.steps[x.Step] = true
	e.exchanges = append(e.exchanges, x)
}

// Fatalf ends the scenario: it could not be run. What a broker answers is never a reason for that.
func (e *Env) Fatalf(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf(e.scenario+": "+format, args...)
}

// Conn is a new connection with the client id "judge".
func (e *Env) Conn() *Conn { return e.ConnAs("judge") }

// ConnAs is a new connection with this client id.
func (e *Env) ConnAs(clientID string) *Conn {
	c := &Conn{env: e, formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))}
	e.conns = append(e.conns, c)
	return c
}

// Quiet sends a request that is not recorded, and returns the response; nil if the connection was closed.
func (e *Env) Quiet(version int16, req kmsg.Request) kmsg.Response {
	e.t.Helper()
	return e.quiet.Do("", version, req)
}

// Now is the present time in milliseconds, moved by whole hours: "<now+2h>" in the recording.
func (e *Env) Now(hours int) int64 {
	return time.Now().Add(time.Duration(hours) * time.Hour).UnixMilli()
}

// Name is the name that a topic of the scenario has in every run.
func (e *Env) Name(label string) string { return e.scenario + "-" + label }

// Topic is a topic that is ready for use.
type Topic struct {
	Name string
	ID   [16]byte
}

// CreateTopic makes a topic, unrecorded, and returns once every partition serves requests: Kafka answers before that. configs are pairs of
// name and value.
func (e *Env) CreateTopic(label string, partitions int32, configs ...string) Topic {
	e.t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = e.Name(label), partitions, 1
	for i := 0; i < len(configs); i += 2 {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30000
	resp := e.Quiet(7, req).(*kmsg.CreateTopicsResponse)
	if t := resp.Topics[0]; t.ErrorCode != 0 {
		e.Fatalf("create %s: %s %v", topic.Topic, ErrorName(t.ErrorCode), t.ErrorMessage)
	}
	e.AwaitTopic(topic.Topic, partitions)
	return Topic{Name: topic.Topic, ID: resp.Topics[0].TopicID}
}

// AwaitTopic returns once every partition of the topic serves requests.
func (e *Env) AwaitTopic(name string, partitions int32) {
	e.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = name
	for p := range partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p, -1
		topic.Partitions = append(topic.Partitions, partition)
	}
	req.ReplicaID, req.Topics = -1, append(req.Topics, topic)
	e.Await("topic "+name, func() bool {
		for _, p := range e.Quiet(7, req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			if p.ErrorCode != 0 {
				return false
			}
		}
		return true
	})
}

// AwaitNoTopic returns once the broker no longer knows the topic, as some time after Kafka has answered a DeleteTopics.
func (e *Env) AwaitNoTopic(name string) {
	e.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	req.AllowAutoTopicCreation = false
	e.Await("end of topic "+name, func() bool {
		return e.Quiet(9, req).(*kmsg.MetadataResponse).Topics[0].ErrorCode == 3
	})
}

// Await calls done until it says true.
func (e *Env) Await(what string, done func() bool) {
	e.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(end) {
			e.Fatalf("waited in vain for %s", what)
		}
	}
}
