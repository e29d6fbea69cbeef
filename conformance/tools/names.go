package tools

// classes are the tools by the names of their scripts in Kafka's bin directory, which call these classes.
var classes = map[string]string{
	"kafka-acls":                      "AclCommand",
	"kafka-broker-api-versions":       "BrokerApiVersionsCommand",
	"kafka-client-metrics":            "ClientMetricsCommand",
	"kafka-cluster":                   "ClusterTool",
	"kafka-configs":                   "ConfigCommand",
	"kafka-console-consumer":          "consumer.ConsoleConsumer",
	"kafka-console-producer":          "ConsoleProducer",
	"kafka-console-share-consumer":    "consumer.ConsoleShareConsumer",
	"kafka-consumer-groups":           "consumer.group.ConsumerGroupCommand",
	"kafka-consumer-perf-test":        "ConsumerPerformance",
	"kafka-delegation-tokens":         "DelegationTokenCommand",
	"kafka-delete-records":            "DeleteRecordsCommand",
	"kafka-e2e-latency":               "EndToEndLatency",
	"kafka-features":                  "FeatureCommand",
	"kafka-get-offsets":               "GetOffsetShell",
	"kafka-groups":                    "GroupsCommand",
	"kafka-leader-election":           "LeaderElectionCommand",
	"kafka-log-dirs":                  "LogDirsCommand",
	"kafka-metadata-quorum":           "MetadataQuorumCommand",
	"kafka-producer-perf-test":        "ProducerPerformance",
	"kafka-reassign-partitions":       "reassign.ReassignPartitionsCommand",
	"kafka-replica-verification":      "ReplicaVerificationTool",
	"kafka-share-groups":              "consumer.group.ShareGroupCommand",
	"kafka-streams-application-reset": "StreamsResetter",
	"kafka-streams-groups":            "streams.StreamsGroupCommand",
	"kafka-topics":                    "TopicCommand",
	"kafka-transactions":              "TransactionsCommand",
	"kafka-verifiable-consumer":       "VerifiableConsumer",
	"kafka-verifiable-producer":       "VerifiableProducer",
}

const toolPackage = "org.apache.kafka.tools."
