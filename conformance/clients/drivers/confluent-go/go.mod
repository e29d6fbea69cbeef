module github.com/dozekafka/doze-kafka/conformance/clients/drivers/confluent-go

go 1.26.0

require (
	github.com/confluentinc/confluent-kafka-go/v2 v2.11.1
	github.com/dozekafka/doze-kafka/conformance v0.0.0
)

replace github.com/dozekafka/doze-kafka/conformance => ../../..
