package topic

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func outcome(c Created) string {
	if c.Err == nil {
		return fmt.Sprintf("%d partitions", c.Topic.Partitions())
	}
	text := "(no text)"
	if m := kafka.ErrorMessage(c.Err); m != nil {
		text = *m
	}
	return kerr.TypedErrorForCode(kafka.ErrorCode(c.Err)).Message + ": " + text
}

func withConfig(name, value string) []ConfigEntry { return []ConfigEntry{{name, &value}} }

// Reference 5.2: codes, texts and their order are those of Kafka 4.4.
func TestCreateAnswersAsKafkaDoes(t *testing.T) {
	k := onDisk(t)
	k.settings.NumPartitions = 4
	k.start()
	defer k.stop()
	k.create(simple("there"), simple("a.b"))
	strict := onDisk(t)
	strict.settings.StrictReplication = true
	strict.start()
	defer strict.stop()
	replicas := func(lists ...[]int32) (all []Assignment) {
		for i, l := range lists {
			all = append(all, Assignment{int32(i), l})
		}
		return all
	}
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Name: "ok", Partitions: 3, ReplicationFactor: 1}, "3 partitions"},
		{Spec{Name: "defaults", Partitions: -1, ReplicationFactor: -1}, "4 partitions"},
		{Spec{Name: "rf3", Partitions: 1, ReplicationFactor: 3}, "1 partitions"},
		{Spec{Name: "__cluster_metadata", Partitions: 1, ReplicationFactor: 1}, "INVALID_REQUEST: Creation of internal topic __cluster_metadata is prohibited."},
		{Spec{Name: "", Partitions: 0}, "INVALID_TOPIC_EXCEPTION: Topic name is invalid: the empty string is not allowed"},
		{Spec{Name: "a b"}, "INVALID_TOPIC_EXCEPTION: Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{Spec{Name: "a_b"}, "INVALID_TOPIC_EXCEPTION: Topic 'a_b' collides with existing topic: a.b"},
		{Spec{Name: "a.b"}, "TOPIC_ALREADY_EXISTS: Topic 'a.b' already exists."},
		{Spec{Name: "there", Configs: withConfig("x", "1")}, "TOPIC_ALREADY_EXISTS: Topic 'there' already exists."},
		{Spec{Name: "n", Configs: []ConfigEntry{{"b", nil}, {"a", nil}}}, "INVALID_CONFIG: Null value not supported for topic configs: b,a"},
		{Spec{Name: "n", Configs: withConfig("foo", "1")}, "INVALID_CONFIG: Unknown topic config name: foo"},
		{Spec{Name: "n", Configs: withConfig("retention.ms", "-5")}, "INVALID_CONFIG: Invalid value -5 for configuration retention.ms: Value must be at least -1"},
		{Spec{Name: "n", Partitions: 0, ReplicationFactor: 0}, "INVALID_REPLICATION_FACTOR: Replication factor must be larger than 0, or -1 to use the default value."},
		{Spec{Name: "n", Partitions: 0, ReplicationFactor: 1}, "INVALID_PARTITIONS: Number of partitions was set to an invalid non-positive value."},
		{Spec{Name: "n", Partitions: -2, ReplicationFactor: 5}, "INVALID_PARTITIONS: Number of partitions was set to an invalid non-positive value."},
		{Spec{Name: "n", Partitions: 10001, ReplicationFactor: 1}, "POLICY_VIOLATION: Excessively large number of partitions per request."},
		{Spec{Name: "manual", Partitions: -1, ReplicationFactor: -1, Assignments: replicas([]int32{1}, []int32{1})}, "2 partitions"},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: 1, Assignments: replicas([]int32{1})},
			"INVALID_REQUEST: A manual partition assignment was specified, but replication factor was not set to -1."},
		{Spec{Name: "n", Partitions: 1, ReplicationFactor: -1, Assignments: replicas([]int32{1})},
			"INVALID_REQUEST: A manual partition assignment was specified, but numPartitions was not set to -1."},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: replicas([]int32{})},
			"INVALID_REPLICA_ASSIGNMENT: The manual partition assignment includes an empty replica list."},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: replicas([]int32{1, 2})},
			"INVALID_REPLICA_ASSIGNMENT: The manual partition assignment includes broker 2, but no such broker is registered."},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: replicas([]int32{1, 1})},
			"INVALID_REPLICA_ASSIGNMENT: The manual partition assignment includes the broker 1 more than once."},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1}}, {0, []int32{1}}}},
			"INVALID_REPLICA_ASSIGNMENT: Found multiple manual partition assignments for partition 0"},
		{Spec{Name: "n", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{1, []int32{1}}}},
			"INVALID_REPLICA_ASSIGNMENT: partitions should be a consecutive 0-based integer sequence"},
	} {
		if got := outcome(k.Create(t.Context(), []Spec{c.spec}, false)[0]); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.spec, got, c.want)
		}
	}
	// FX-4: with strict replication the factor is checked as by a Kafka of one broker.
	got := outcome(strict.Create(t.Context(), []Spec{{Name: "n", Partitions: 1, ReplicationFactor: 3}}, false)[0])
	if got != "INVALID_REPLICATION_FACTOR: Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "+
		"because only 1 broker(s) are registered or some brokers have all their log directories cordoned." {
		t.Error(got)
	}
}

func TestRepeatedNamesAreRefusedAndOthersMade(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	before := k.store.Commits()
	made := k.Create(t.Context(), []Spec{simple("x"), simple("a"), simple("x"), simple("c.c"), simple("c_c")}, false)
	for i, want := range []string{"INVALID_REQUEST: Duplicate topic name.", "1 partitions", "INVALID_REQUEST: Duplicate topic name.", "1 partitions", "1 partitions"} {
		if got := outcome(made[i]); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if n := k.store.Commits() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
}

func TestValidateOnlyMakesNothing(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	c := k.Create(t.Context(), []Spec{simple("a"), simple("b b")}, true)
	if c[0].Err != nil || c[0].Topic.ID().IsZero() || c[1].Err == nil || len(k.All()) != 0 || k.store.Commits() != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := c[0].Topic.Log(0); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%v", err)
	}
}

// ST-60: a disk that refuses the commit is KAFKA_STORAGE_ERROR, and the topic is not there.
func TestAFailedCommitMakesNoTopic(t *testing.T) {
	k := onDisk(t)
	k.start()
	k.fail = func() error { return syscall.EIO }
	if _, err := k.Ensure(t.Context(), "a"); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("%v", err)
	}
	if _, ok := k.Lookup("a"); ok {
		t.Error("the topic is there")
	}
}

func TestAContextThatEndsIsATimeout(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := k.Create(ctx, []Spec{simple("a")}, false); kafka.ErrorCode(c[0].Err) != kerr.RequestTimedOut.Code {
		t.Errorf("%v", c[0].Err)
	}
}

// PF-9: 1,000 topics in one request, in one commit.
func TestAThousandTopicsInOneRequest(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	specs := make([]Spec, 1000)
	for i := range specs {
		specs[i] = simple(fmt.Sprintf("topic-%d", i))
	}
	begin, before := time.Now(), k.store.Commits()
	k.create(specs...)
	t.Logf("%v", time.Since(begin))
	if n := k.store.Commits() - before; n != 1 || len(k.All()) != 1000 {
		t.Errorf("%d commits, %d topics", n, len(k.All()))
	}
}
