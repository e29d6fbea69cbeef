package dumplog

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// ST-5, TX-8: kafka-dump-log reads control batches and transaction indexes without complaint, and finds
// a marker for each transaction and an entry for each that was aborted.
func TestDumpLogOfTransactions(t *testing.T) {
	target.Need(t, "java", "mvn")
	broker := target.Start(t, target.Options{
		Flags:      []string{"--segment-bytes", "1048576"},
		Properties: map[string]string{"log.segment.bytes": "1048576"},
	})
	const each = 20
	transact(t, broker.Addr(), each)
	dir := broker.DataDir()
	broker.Stop()

	logs := files(t, dir, ".log")
	if len(logs) < 2 {
		t.Fatalf("%d segments, which is too few to mean much: %v", len(logs), logs)
	}
	deep := dump(t, DeepIteration, logs)
	if deep.Markers != each || deep.Counted != deep.Records {
		t.Errorf("%d markers, want %d; the batches count %d records, deep iteration found %d", deep.Markers, each, deep.Counted, deep.Records)
	}
	indexes := files(t, dir, ".txnindex")
	if got := dump(t, Print, indexes); got.Aborted != each/2 {
		t.Errorf("%d aborted transactions in %d files, want %d", got.Aborted, len(indexes), each/2)
	}
	t.Logf("%s: %d segments, %d transaction indexes, %d markers", broker.Name(), len(logs), len(indexes), deep.Markers)
}

// transact makes n transactions of 200 KB on one partition, every second of which is aborted.
func transact(t *testing.T, addr string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("dumplog"), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 20_000)
	for i := range n {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		var records []*kgo.Record
		for range 10 {
			records = append(records, &kgo.Record{Value: value})
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		// franz-go 1.22.3 sends the first records for a topic before it has stored the topic's partitions, and a transaction that is ended in
		// between counts as one without records: nothing is sent, and no error comes. This waits until its update of metadata is done.
		client.PurgeTopicsFromProducing("no topic")
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)); err != nil {
			t.Fatal(err)
		}
	}
}
