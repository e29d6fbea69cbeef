// Package retention asks Apache Kafka when committed offsets expire (GR-7), in real time, by a script that pkg/group plays on a clock of its own.
package retention

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var record = flag.Bool("record", false, "ask Apache Kafka, which takes two minutes, and write its answers into testdata/")

const path = "testdata/offset-retention.txt"

// GR-7. Without -record this test looks only whether the recording is of the pinned Kafka: TestOffsetsExpireAsKafkas of pkg/group compares.
func TestOffsetRetention(t *testing.T) {
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !*record {
		if !strings.Contains(string(script), "Apache Kafka "+kafka.Version()+"'s") {
			t.Errorf("%s is not of Kafka %s: record again", path, kafka.Version())
		}
		return
	}
	t.Setenv("DOZE_KAFKA_TARGET", "kafka")
	t.Setenv("BOOTSTRAP", "")
	broker := target.Start(t, target.Options{Properties: map[string]string{
		"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500", "offsets.topic.num.partitions": "1",
	}})
	w := newWorld(t, broker.Addr())
	var out strings.Builder
	for line := range strings.Lines(string(script)) {
		if strings.HasPrefix(line, "|") {
			continue // the answer of the time before
		}
		out.WriteString(line)
		w.do(strings.Fields(line), &out)
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// world is what a script acts in.
type world struct {
	t       *testing.T
	addr    string
	old     *kgo.Client // speaks OffsetCommit v2
	admin   *kadm.Client
	topics  []string
	groups  []string // in the order in which the script names them
	members map[string]func()
	started time.Time // of the first line that does something
}

func newWorld(t *testing.T, addr string) *world {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.OffsetCommit.Int16(), 2)
	old, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, addr: addr, old: old, admin: kadm.NewClient(client), topics: []string{"t", "u"}, members: map[string]func(){}}
	if _, err := w.admin.CreateTopics(t.Context(), 1, 1, nil, w.topics...); err != nil {
		t.Fatal(err)
	}
	w.commit("warm", "t", -1) // the offsets topic is made by the first
	if _, err := w.admin.DeleteGroup(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, leave := range w.members {
			leave()
		}
		client.Close()
		old.Close()
	})
	w.started = time.Now()
	return w
}

func (w *world) do(words []string, out *strings.Builder) {
	w.t.Helper()
	if len(words) == 0 || words[0] == "#" {
		return
	}
	if len(words) > 1 && words[0] != "at" && !slices.Contains(w.groups, words[1]) {
		w.groups = append(w.groups, words[1])
	}
	switch words[0] {
	case "commit":
		topics, retention, _ := strings.Cut(strings.Join(words[2:], " "), " retention ")
		ms := int64(-1)
		if retention != "" {
			ms = w.duration(retention).Milliseconds()
		}
		for topic := range strings.FieldsSeq(topics) {
			w.commit(words[1], topic, ms)
		}
	case "join":
		w.join(words[1], words[2])
	case "leave":
		w.members[words[1]]()
		delete(w.members, words[1])
	case "at":
		timer := time.NewTimer(time.Until(w.started.Add(w.duration(words[1]))))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.t.Context().Done():
		}
	case "show":
		for _, group := range w.groups {
			fmt.Fprintf(out, "| %s\n", w.show(group))
		}
	default:
		w.t.Fatalf("nothing is known about %q", words)
	}
}

func (w *world) duration(text string) time.Duration {
	w.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// commit sends OffsetCommit v2, the one with retention_time_ms, until Kafka has loaded the group's coordinator.
func (w *world) commit(group, topic string, retentionMs int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	for {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.Generation, r.RetentionTimeMillis, r.Version = group, -1, retentionMs, 2
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Offset = 1
		topics := kmsg.NewOffsetCommitRequestTopic()
		topics.Topic, topics.Partitions = topic, []kmsg.OffsetCommitRequestTopicPartition{partition}
		r.Topics = []kmsg.OffsetCommitRequestTopic{topics}
		response, err := r.RequestWith(ctx, w.old)
		if err == nil && response.Topics[0].Partitions[0].ErrorCode == 0 {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("commit of %s: %+v, %v", group, response, err)
		}
	}
}

func (w *world) join(group, topic string) {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx)
		}
	}()
	w.members[group] = func() { cancel(); <-done; client.Close() }
	for {
		groups, err := w.admin.DescribeGroups(w.t.Context(), group)
		if err != nil {
			w.t.Fatal(err)
		}
		if groups[group].State == "Stable" {
			return
		}
	}
}

// show is a group's state and the topics that it has offsets of.
func (w *world) show(group string) string {
	w.t.Helper()
	groups, err := w.admin.DescribeGroups(w.t.Context(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	offsets, err := w.admin.FetchOffsets(w.t.Context(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	line := group + " " + groups[group].State
	for _, topic := range w.topics {
		if o, ok := offsets.Lookup(topic, 0); ok && o.At >= 0 {
			line += " " + topic
		}
	}
	return line
}
