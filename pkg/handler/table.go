package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// An api is one line of the table of what is spoken.
type api struct {
	spec  server.Spec
	start start
}

// apis is the table, by key. The version ranges are those of Kafka 4.4
// (ApiKeys, on a broker's listener). Produce is advertised from v0 because
// librdkafka takes the message format from it (KAFKA-18659), but v0 to v2
// close the connection. Only Produce overlaps: clients rely on Kafka handling
// one request of a connection at a time, and of Produce they see no difference.
func apis() []api {
	return []api{
		{spec(kmsg.Produce, 3, 13, overlapping, advertisedFrom(0)), (*Handler).produce},
		{spec(kmsg.Fetch, 4, 18), (*Handler).fetch},
		{spec(kmsg.ListOffsets, 1, 11), atOnce((*Handler).listOffsets)},
		{spec(kmsg.Metadata, 0, 13), (*Handler).metadata},
		{spec(kmsg.OffsetCommit, 2, 10), inReply((*Handler).offsetCommit)},
		{spec(kmsg.OffsetFetch, 1, 10), atOnce((*Handler).offsetFetch)},
		{spec(kmsg.FindCoordinator, 0, 6), atOnce((*Handler).findCoordinator)},
		{spec(kmsg.JoinGroup, 0, 9), (*Handler).joinGroup},
		{spec(kmsg.Heartbeat, 0, 4), atOnce((*Handler).heartbeat)},
		{spec(kmsg.LeaveGroup, 0, 5), atOnce((*Handler).leaveGroup)},
		{spec(kmsg.SyncGroup, 0, 5), (*Handler).syncGroup},
		{spec(kmsg.DescribeGroups, 0, 6), atOnce((*Handler).describeGroups)},
		{spec(kmsg.ListGroups, 0, 5), atOnce((*Handler).listGroups)},
		{spec(kmsg.ApiVersions, 0, 5, anyVersion), (*Handler).apiVersions},
		{spec(kmsg.CreateTopics, 2, 7), inReply((*Handler).createTopics)},
		{spec(kmsg.DeleteTopics, 1, 6), inReply((*Handler).deleteTopics)},
		{spec(kmsg.DeleteRecords, 0, 2), inReply((*Handler).deleteRecords)},
		{spec(kmsg.InitProducerID, 0, 5), inReply((*Handler).initProducerID)},
		{spec(kmsg.OffsetForLeaderEpoch, 2, 4), atOnce((*Handler).offsetForLeaderEpoch)},
		{spec(kmsg.AddPartitionsToTxn, 0, 5), inReply((*Handler).addPartitionsToTxn)},
		{spec(kmsg.AddOffsetsToTxn, 0, 4), inReply((*Handler).addOffsetsToTxn)},
		{spec(kmsg.EndTxn, 0, 5), inReply((*Handler).endTxn)},
		{spec(kmsg.WriteTxnMarkers, 1, 2), inReply((*Handler).writeTxnMarkers)},
		{spec(kmsg.TxnOffsetCommit, 0, 6), inReply((*Handler).txnOffsetCommit)},
		{spec(kmsg.DescribeConfigs, 1, 4), atOnce((*Handler).describeConfigs)},
		{spec(kmsg.AlterConfigs, 0, 2), inReply((*Handler).alterConfigs)},
		{spec(kmsg.DescribeLogDirs, 1, 5), inReply((*Handler).describeLogDirs)},
		{spec(kmsg.CreatePartitions, 0, 3), inReply((*Handler).createPartitions)},
		{spec(kmsg.DeleteGroups, 0, 3), inReply((*Handler).deleteGroups)},
		{spec(kmsg.IncrementalAlterConfigs, 0, 1), inReply((*Handler).incrementalAlterConfigs)},
		{spec(kmsg.OffsetDelete, 0, 0), inReply((*Handler).offsetDelete)},
		{spec(kmsg.DescribeCluster, 0, 2), atOnce((*Handler).describeCluster)},
		{spec(kmsg.ListConfigResources, 0, 1), atOnce((*Handler).listConfigResources)},
		{spec(kmsg.DescribeProducers, 0, 0), atOnce((*Handler).describeProducers)},
		{spec(kmsg.DescribeTransactions, 0, 0), atOnce((*Handler).describeTransactions)},
		{spec(kmsg.ListTransactions, 0, 2), atOnce((*Handler).listTransactions)},
		{spec(kmsg.DescribeTopicPartitions, 0, 0), atOnce((*Handler).describeTopicPartitions)},
	}
}

// spec makes the line of an API that is advertised as it is accepted, unless an option says more.
func spec(key kmsg.Key, minVersion, maxVersion int16, options ...func(*server.Spec)) server.Spec {
	s := server.Spec{Key: key.Int16(), Min: minVersion, Max: maxVersion, AdvertMin: minVersion}
	for _, o := range options {
		o(&s)
	}
	return s
}

func overlapping(s *server.Spec) { s.Overlap = true }

func anyVersion(s *server.Spec) { s.AnyVersion = true }

func advertisedFrom(v int16) func(*server.Spec) {
	return func(s *server.Spec) { s.AdvertMin = v }
}

// Names are the names of the APIs that are spoken, by key.
func Names() map[int16]string {
	names := make(map[int16]string)
	for _, a := range apis() {
		names[a.spec.Key] = kmsg.NameForKey(a.spec.Key)
	}
	return names
}
