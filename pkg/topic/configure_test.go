package topic

import (
	"errors"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func set(name, value string) ConfigOp { return ConfigOp{OpSet, name, value} }

// alter changes one topic's configs.
func (k *kit) alter(name string, ops ...ConfigOp) error {
	return k.AlterConfigs(k.Context(), []ConfigChange{{Topic: name, Ops: ops}}, false)[0]
}

// A change is durable, and a log that is open acts on it at once, whichever *Topic it is asked through.
func TestAlterConfigsActsOnOpenLogs(t *testing.T) {
	k := onDisk(t).start()
	before := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1})[0]
	k.mustProduce(before, 0, strings.Repeat("x", 500))
	if err := k.alter("a", set("max.message.bytes", "100")); err != nil {
		t.Fatal(err)
	}
	for partition := range int32(2) { // of the second the log is opened only now
		if err := k.produce(before, partition, strings.Repeat("x", 500)); !errors.Is(err, kerr.MessageTooLarge) {
			t.Errorf("partition %d: %v", partition, err)
		}
	}
	k.stop()
	k.start()
	now, _ := k.Lookup("a")
	if now.ID() != before.ID() || !maps.Equal(now.Overrides(), map[string]string{"max.message.bytes": "100"}) {
		t.Errorf("%v %v", now.ID(), now.Overrides())
	}
	if err := k.produce(now, 0, strings.Repeat("x", 500)); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("after a restart: %v", err)
	}
	if err := k.alter("a", ConfigOp{Op: OpDelete, Name: "max.message.bytes"}); err != nil {
		t.Fatal(err)
	}
	k.mustProduce(now, 0, strings.Repeat("x", 500))
	k.stop()
}

// What an operation on a list comes to (ConfigurationControlManager.getParts), also on one without an override.
func TestAlterConfigsOfLists(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	k.create(simple("a"))
	const policy, throttled = "cleanup.policy", "leader.replication.throttled.replicas"
	for _, x := range []struct {
		op   ConfigOp
		want string
	}{
		{ConfigOp{OpAppend, policy, "compact"}, "delete,compact"},
		{ConfigOp{OpAppend, policy, "compact"}, "delete,compact"},
		{ConfigOp{OpSubtract, policy, "nothing"}, "delete,compact"},
		{ConfigOp{OpSubtract, policy, "delete"}, "compact"},
		{ConfigOp{OpSubtract, policy, "compact,delete"}, ""},
		{ConfigOp{OpAppend, policy, ""}, ""},
		{ConfigOp{OpAppend, throttled, "0:1"}, "0:1"},
		{ConfigOp{OpAppend, throttled, "0:1,1:1,1:1,,"}, "0:1,1:1"},
		{ConfigOp{OpAppend, throttled, ",,"}, "0:1,1:1"},
		{ConfigOp{OpAppend, throttled, ",2:1"}, "0:1,1:1,,2:1"},
		{ConfigOp{OpSubtract, throttled, " 1:1"}, "0:1,1:1,2:1"},
	} {
		if err := k.alter("a", x.op); err != nil {
			t.Fatalf("%+v: %v", x.op, err)
		}
		if a, _ := k.Lookup("a"); a.Overrides()[x.op.Name] != x.want {
			t.Errorf("%+v: %q, want %q", x.op, a.Overrides()[x.op.Name], x.want)
		}
	}
	for _, x := range []struct {
		op   Op
		name string
		want string
	}{
		{OpAppend, "flush.ms", "Can't APPEND to key flush.ms because its type is not LIST."},
		{OpSubtract, "nonsense", "Can't SUBTRACT to key nonsense because its type is not LIST."},
	} {
		err := k.alter("a", ConfigOp{x.op, x.name, "1"})
		if m := kafka.ErrorMessage(err); !errors.Is(err, kerr.InvalidConfig) || m == nil || *m != x.want {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if err := k.alter("a", ConfigOp{9, "flush.ms", "1"}); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("an unknown operation: %v", err)
	}
}

// The configs that a change comes to are checked as a whole, and before whether there is such a topic. Others in the request are left alone.
func TestAlterConfigsChecksTheWhole(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	limits := simple("limits")
	five := "5"
	limits.Configs = []ConfigEntry{{"max.compaction.lag.ms", &five}}
	k.create(simple("a"), limits)
	long := ConfigOp{OpSet, "leader.replication.throttled.replicas", strings.Repeat("1:1,", 8192) + "1:1"}
	changes := []ConfigChange{
		{Topic: "limits", Ops: []ConfigOp{set("min.compaction.lag.ms", "10")}},
		{Topic: "a", Ops: []ConfigOp{set("flush.ms", "7")}},
		{Topic: "none", Ops: []ConfigOp{set("flush.ms", "x")}},
		{Topic: "gone", Ops: []ConfigOp{set("flush.ms", "7")}},
		{Topic: "a b", Ops: []ConfigOp{set("flush.ms", "7")}},
		{Topic: "", Ops: []ConfigOp{set("flush.ms", "x")}},
		{Topic: "b", Ops: []ConfigOp{long}},
	}
	want := []error{kerr.InvalidConfig, nil, kerr.InvalidConfig, kerr.UnknownTopicOrPartition, kerr.InvalidTopicException, kerr.InvalidRequest, kerr.InvalidConfig}
	for _, validateOnly := range []bool{true, false} {
		for i, err := range k.AlterConfigs(t.Context(), changes, validateOnly) {
			if !errors.Is(err, want[i]) {
				t.Errorf("%q: %v", changes[i].Topic, err)
			}
		}
		if a, _ := k.Lookup("a"); (a.Overrides()["flush.ms"] == "7") == validateOnly {
			t.Errorf("validate only %v: %v", validateOnly, a.Overrides())
		}
	}
	if l, _ := k.Lookup("limits"); !maps.Equal(l.Overrides(), map[string]string{"max.compaction.lag.ms": "5"}) {
		t.Errorf("%v", l.Overrides())
	}
}

// AlterConfigs of old: what has no operation goes.
func TestAlterConfigsReplaces(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	k.create(simple("a"))
	if err := k.alter("a", set("flush.ms", "7"), set("segment.ms", "8")); err != nil {
		t.Fatal(err)
	}
	for _, ops := range [][]ConfigOp{{set("segment.ms", "9")}, nil} {
		if err := k.AlterConfigs(t.Context(), []ConfigChange{{Topic: "a", Replace: true, Ops: ops}}, false)[0]; err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, op := range ops {
			want[op.Name] = op.Value
		}
		if a, _ := k.Lookup("a"); !maps.Equal(a.Overrides(), want) {
			t.Errorf("%v, want %v", a.Overrides(), want)
		}
	}
}

// What could not be committed has no effect. A change that changes nothing needs no commit.
func TestAlterConfigsFailsWithTheCommit(t *testing.T) {
	k := onDisk(t)
	k.start()
	topic := k.create(simple("a"))[0]
	k.mustProduce(topic, 0, "x")
	if err := k.alter("a", set("flush.ms", "7")); err != nil {
		t.Fatal(err)
	}
	k.fail = func() error { return syscall.EIO }
	if err := k.alter("a", set("max.message.bytes", "1")); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("%v", err)
	}
	if err := k.alter("a", set("flush.ms", "7")); err != nil {
		t.Errorf("nothing changes: %v", err)
	}
	k.mustProduce(topic, 0, "y")
	if a, _ := k.Lookup("a"); !maps.Equal(a.Overrides(), map[string]string{"flush.ms": "7"}) {
		t.Errorf("%v", a.Overrides())
	}
}
