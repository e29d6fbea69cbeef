package topic

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// alterBroker changes configs of the cluster, or of the broker.
func (k *kit) alterBroker(cluster bool, ops ...ConfigOp) error {
	return k.AlterBroker(k.Context(), []BrokerChange{{Cluster: cluster, Ops: ops}}, false)[0]
}

// A change is durable, and logs that are open act on it at once, as do those
// opened later and those of topics with other configs of their own.
func TestBrokerConfigsActOnOpenLogs(t *testing.T) {
	k := onDisk(t).start()
	large := strings.Repeat("x", 500)
	a := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1})[0]
	flush, limit := "5000", "100000"
	b := k.create(Spec{Name: "b", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"flush.ms", &flush}}})[0]
	c := k.create(Spec{Name: "c", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"max.message.bytes", &limit}}})[0]
	k.mustProduce(a, 0, large)
	k.mustProduce(b, 0, large)
	k.mustProduce(c, 0, large)
	refused := func(when string) {
		t.Helper()
		for partition := range int32(2) { // of the second the log is opened only now
			if err := k.produce(a, partition, large); !errors.Is(err, kerr.MessageTooLarge) {
				t.Errorf("%s, partition %d: %v", when, partition, err)
			}
		}
		if err := k.produce(b, 0, large); !errors.Is(err, kerr.MessageTooLarge) {
			t.Errorf("%s, a topic with other configs: %v", when, err)
		}
		k.mustProduce(c, 0, large) // its own limit
	}
	if err := k.alterBroker(true, set("message.max.bytes", "100")); err != nil {
		t.Fatal(err)
	}
	refused("at once")
	k.stop()
	k.start()
	a, _ = k.Lookup("a")
	b, _ = k.Lookup("b")
	c, _ = k.Lookup("c")
	refused("after a restart")
	if err := k.alterBroker(false, set("message.max.bytes", "5000")); err != nil {
		t.Fatal(err)
	}
	k.mustProduce(a, 0, large)
	k.stop()
	k.start()
	a, _ = k.Lookup("a")
	b, _ = k.Lookup("b")
	c, _ = k.Lookup("c")
	k.mustProduce(a, 0, large)
	if err := k.alterBroker(false, ConfigOp{Op: OpDelete, Name: "message.max.bytes"}); err != nil {
		t.Fatal(err)
	}
	refused("once more")
	k.stop()
}

// Recorded from Kafka: alter-configs-broker and alter-configs-broker-lists.
func TestErrorsOfBrokerConfigs(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	for _, x := range []struct {
		cluster bool
		op      ConfigOp
		err     *kerr.Error
		text    string
	}{
		{true, set("node.id", "5"), kerr.InvalidRequest, "Cannot update these configs dynamically: [node.id]"},
		{true, ConfigOp{Op: 4, Name: "message.max.bytes"}, kerr.InvalidRequest, "Unknown operations type 4"},
		{false, ConfigOp{OpAppend, "message.max.bytes", "5"}, kerr.InvalidConfig, "Config value append is not allowed for config key: message.max.bytes"},
		{false, ConfigOp{OpSubtract, "x.y", "5"}, kerr.InvalidConfig, "Unknown config name: x.y"},
		{true, ConfigOp{OpAppend, "log.cleanup.policy", "compact,compact"}, kerr.InvalidRequest, "Configuration 'log.cleanup.policy' values must not be duplicated."},
		{true, ConfigOp{Op: OpDelete, Name: "min.insync.replicas"}, kerr.InvalidConfig, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."},
		{false, set("min.insync.replicas", "1"), kerr.InvalidConfig, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."},
		{false, set("x.y", strings.Repeat("x", 32768)), kerr.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."},
	} {
		err := k.alterBroker(x.cluster, x.op)
		if m := kafka.ErrorMessage(err); !errors.Is(err, x.err) || m == nil || *m != x.text {
			t.Errorf("%.60v: %v, want %s", x.op, err, x.text)
		}
	}
	if d := k.Settings().Dynamic(); len(d.Broker) != 0 || !maps.Equal(d.Cluster, map[string]string{"min.insync.replicas": "1"}) {
		t.Errorf("altered: %v", d)
	}
}

// Of two changes in one request each is on its own; validate only changes nothing.
func TestChangesOfBrokerAndCluster(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	changes := []BrokerChange{{Cluster: true, Ops: []ConfigOp{set("message.max.bytes", "x")}}, {Replace: true, Ops: []ConfigOp{set("log.retention.ms", "5")}}}
	for _, validateOnly := range []bool{true, false} {
		errs := k.AlterBroker(t.Context(), changes, validateOnly)
		if !errors.Is(errs[0], kerr.InvalidRequest) || errs[1] != nil {
			t.Errorf("%v", errs)
		}
		d := k.Settings().Dynamic()
		if (len(d.Broker) == 1) == validateOnly || len(d.Cluster) != 1 {
			t.Errorf("validate only %v: %v", validateOnly, d)
		}
	}
}

// ST-64: a commit that fails changes nothing that anybody sees.
func TestBrokerConfigsFailWithTheCommit(t *testing.T) {
	k := onDisk(t)
	broken := false
	k.fail = func() error {
		if broken {
			return errors.New("no space left")
		}
		return nil
	}
	k.start()
	broken = true
	if err := k.alterBroker(true, set("log.retention.ms", "5")); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("%v", err)
	}
	if _, ok := k.Settings().Dynamic().Cluster["log.retention.ms"]; ok {
		t.Error("it is seen all the same")
	}
}

// What another version stored is left out with a warning; the rest has its effect.
func TestStoredConfigsThatAreNotKnown(t *testing.T) {
	k := onDisk(t).start()
	err := k.store.Update(t.Context(), func(tx *metastore.Tx) error {
		return tx.PutBrokerConfigs(k.settings.NodeID, map[string]string{"listeners": "A://:1", "message.max.bytes": "100"})
	})
	if err != nil {
		t.Fatal(err)
	}
	k.stop()
	k.start()
	defer k.stop()
	if d := k.Settings().Dynamic(); !maps.Equal(d.Broker, map[string]string{"message.max.bytes": "100"}) || !k.logged.has("names=[listeners]") {
		t.Errorf("%v", d.Broker)
	}
}

// Values of the cluster that do not fit each other keep no log from being opened (Kafka takes them too).
func TestBrokerConfigsThatDoNotFitOpenLogsAllTheSame(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	a := k.create(simple("a"))[0]
	if err := k.alterBroker(true, set("log.cleaner.min.compaction.lag.ms", "1000"), set("log.cleaner.max.compaction.lag.ms", "999")); err != nil {
		t.Fatal(err)
	}
	k.mustProduce(a, 0, "x")
	if err := k.alter("a", set("flush.ms", "5")); !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("a topic's configs: %v", err)
	}
}

// A change of the broker's that began before one of a topic's, and ends after it, does not take the topic's back.
func TestABrokerChangeBehindOneOfATopic(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	before := k.create(simple("a"))[0]
	k.mustProduce(before, 0, strings.Repeat("x", 500))
	if err := k.alter("a", set("max.message.bytes", "100")); err != nil {
		t.Fatal(err)
	}
	k.configureLogs([]*Topic{before})
	if err := k.produce(before, 0, strings.Repeat("x", 500)); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("%v", err)
	}
}

// Changes of a topic and of the broker side by side: the log ends with both.
func TestChangesOfTopicAndBrokerAtOnce(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	a := k.create(simple("a"))[0]
	k.mustProduce(a, 0, "x")
	for i := range 20 {
		big, small := []string{"100", "5000"}[i%2], []string{"LogAppendTime", "CreateTime"}[i%2]
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := k.alterBroker(true, set("message.max.bytes", big)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := k.alter("a", set("message.timestamp.type", small)); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		err := k.produce(a, 0, strings.Repeat("x", 500))
		if (i%2 == 0) != errors.Is(err, kerr.MessageTooLarge) {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}
