package config

import (
	"regexp"
	"slices"
	"strings"
)

// The prefixes of variables that images people leave take Kafka's properties
// from. A variable with the first beats one with the second.
const (
	kafkaPrefix    = "KAFKA_"
	kafkaCfgPrefix = "KAFKA_CFG_"
)

// clusterIDVariable is Apache's and Confluent's variable for the cluster's id, which is no property.
const clusterIDVariable = "CLUSTER_ID"

// clusterIDProperty stands for the cluster's id among properties.
const clusterIDProperty = "cluster.id"

// notProperties are variables of the images and of the JVM in them.
var notProperties = []string{"KAFKA_VERSION", "KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_HOME",
	"KAFKA_DEBUG", "KAFKA_ENABLE_KRAFT", "KAFKA_CREATE_TOPICS_SEPARATOR", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_CLASSPATH", "KAFKA_USER", "KAFKA_GROUP",
	CreateTopicsVariable}

// notPropertyPrefixes begin more of them.
var notPropertyPrefixes = []string{"KAFKA_LOG4J_", "KAFKA_JMX_", "KAFKA_REST_", "KAFKA_CONFLUENT_", "KAFKA_ZOOKEEPER_"}

// serviceLink are the variables that Kubernetes sets in every container for a
// service whose name begins with kafka; KAFKA_PORT is one of them where its value is an URL.
var serviceLink = regexp.MustCompile(`^KAFKA_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP)(_\w+)?)$`)

// kafkaVariables are the properties that the environment gives, those that win last.
func kafkaVariables(environ []string) []property {
	var all []property
	for _, prefix := range []string{kafkaCfgPrefix, kafkaPrefix} {
		for _, kv := range environ {
			variable, v, _ := strings.Cut(kv, "=")
			rest, ok := strings.CutPrefix(variable, prefix)
			if !ok || v == "" || rest == "" || prefix == kafkaPrefix && strings.HasPrefix(variable, kafkaCfgPrefix) || noProperty(variable, v) {
				continue
			}
			all = append(all, property{kafkaName(rest), strings.TrimSpace(v), variable})
		}
	}
	if v := variable(environ, clusterIDVariable); v != "" {
		all = append(all, property{clusterIDProperty, v, clusterIDVariable})
	}
	return all
}

func noProperty(variable, value string) bool {
	return slices.Contains(notProperties, variable) || serviceLink.MatchString(variable) ||
		strings.HasSuffix(variable, "_PORT") && strings.Contains(value, "://") ||
		slices.ContainsFunc(notPropertyPrefixes, func(p string) bool { return strings.HasPrefix(variable, p) })
}

// kafkaName is Apache's rule (KafkaDockerWrapper): _ is a dot, __ an underscore, ___ a dash.
func kafkaName(rest string) string {
	name := strings.ReplaceAll(strings.ToLower(rest), "_", ".")
	return strings.ReplaceAll(strings.ReplaceAll(name, "...", "-"), "..", "_")
}

// silentProperties are properties that mean nothing on a single broker without
// ZooKeeper, or about Kafka's own machinery, and whose value changes nothing that a client sees.
var silentProperties = []string{"process.roles", "broker.rack", "inter.broker.listener.name", "security.inter.broker.protocol", "inter.broker.protocol.version",
	"default.replication.factor", "early.start.listeners", "initial.broker.registration.timeout.ms", "background.threads", "max.in.flight.requests.per.connection",
	"auto.leader.rebalance.enable", "reserved.broker.max.id", "kraft.cluster.id", "log.message.format.version", "connections.max.idle.ms",
	"log.initial.task.delay.ms", "log.retention.check.interval.ms", "offsets.retention.check.interval.ms", "offsets.commit.timeout.ms",
	"offsets.load.buffer.size", "fetch.purgatory.purge.interval.requests", "producer.purgatory.purge.interval.requests", "controlled.shutdown.enable",
	"delete.records.purgatory.purge.interval.requests", "log.dir.failure.timeout.ms", "delegation.token.secret.key", "license.topic.replication.factor"}

// silentPrefixes begin, and silentSuffixes end, more of them.
var (
	silentPrefixes = []string{"controller.", "zookeeper.", "broker.session.", "broker.heartbeat.", "offsets.topic.", "transaction.state.log.", "share.coordinator.",
		"group.coordinator.", "group.share.", "group.streams.", "metadata.", "replica.", "leader.imbalance.", "confluent.", "metric.", "metrics.", "kafka.metrics.",
		"num.", "queued.", "quota.", "replication.quota.", "alter.log.dirs.replication.", "socket.", "remote.", "telemetry.", "log.cleaner.io.buffer.", "log.flush.", "unstable.", "broker.id."}
	silentSuffixes = []string{".replication.factor", ".min.isr", ".controller.protocol", ".inter.broker.protocol", ".threads"}
)

func silent(p property) bool {
	switch p.name {
	case "delete.topic.enable", "log.cleaner.enable":
		return strings.EqualFold(p.value, "true") // else there is something to tell
	case "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found":
		return false
	}
	return slices.Contains(silentProperties, p.name) ||
		slices.ContainsFunc(silentPrefixes, func(s string) bool { return strings.HasPrefix(p.name, s) }) ||
		slices.ContainsFunc(silentSuffixes, func(s string) bool { return strings.HasSuffix(p.name, s) })
}
