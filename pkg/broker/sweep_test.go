package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/control"
)

// settings are those of an environment, on free ports.
func settings(t *testing.T, environ ...string) *config.Settings {
	t.Helper()
	s, _, err := config.Parse(nil, environ)
	if err != nil {
		t.Fatal(err)
	}
	own := local(t)
	s.DataDir, s.Listeners, s.HTTPListen = own.DataDir, own.Listeners, own.HTTPListen
	return s
}

// post asks the control API for a sweep.
func post(t *testing.T, b *broker.Broker, path string) (code int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+b.HTTPAddr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, body
}

// putKeys produces records, one batch each, to partition 0; a key "-" is none.
func putKeys(t *testing.T, b *broker.Broker, topic string, size int, keys ...string) error {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i, key := range keys {
		r := &kgo.Record{Topic: topic, Key: []byte(key), Value: append(fmt.Append(nil, i, " "), make([]byte, size)...)}
		if key == "-" {
			r.Key = nil
		}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// read consumes partition 0 of a topic up to an offset: keys by their offsets.
func read(t *testing.T, b *broker.Broker, topic string, last int64) (all []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("%v, after %q", err, all)
		}
		for _, r := range f.Records() {
			all = append(all, fmt.Sprint(r.Offset, " ", string(r.Key)))
			if r.Offset == last {
				return all
			}
		}
	}
}

// FX-5, FX-20, ST-40, ST-43: topics that the environment makes with compact, in either way, are compacted: a record without a
// key is refused, and of each key the latest is left once a roll and a compaction were asked for.
func TestTopicsOfTheEnvironmentAreCompacted(t *testing.T) {
	for _, environ := range [][]string{
		{"DOZE_KAFKA_TOPICS=audit:1:cleanup.policy=compact"}, {"KAFKA_CREATE_TOPICS=audit:1:1:compact"},
		{"DOZE_KAFKA_TOPICS=audit:1:cleanup.policy=compact,delete;min.cleanable.dirty.ratio=1"}, {"KAFKA_LOG_CLEANUP_POLICY=compact", "DOZE_KAFKA_TOPICS=audit"},
	} {
		b := start(t, settings(t, environ...))
		if err := putKeys(t, b, "audit", 10, "-"); !strings.Contains(fmt.Sprint(err), kerr.InvalidRecord.Message) {
			t.Errorf("%s: a record without a key: %v", environ, err)
		}
		if err := putKeys(t, b, "audit", 10, "a", "b", "a", "c", "a"); err != nil {
			t.Fatal(err)
		}
		if code, body := post(t, b, "/v1/topics/audit/roll"); code != http.StatusOK || string(bytes.TrimSpace(body)) != `{"partitions":1}` {
			t.Fatalf("%s: %d %s", environ, code, body)
		}
		if err := putKeys(t, b, "audit", 10, "end"); err != nil {
			t.Fatal(err)
		}
		code, body := post(t, b, "/v1/topics/audit/compact")
		var got control.Compacted
		// A sweep may have been there before.
		if err := json.Unmarshal(body, &got); err != nil || code != http.StatusOK || got.Partitions != 1 {
			t.Errorf("%s: %d %s %v", environ, code, body, err)
		}
		if got := read(t, b, "audit", 5); !slices.Equal(got, []string{"1 b", "3 c", "4 a", "5 end"}) {
			t.Errorf("%s: %q", environ, got)
		}
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// ST-49: where the policy has delete, too, a compaction that was asked for is answered once retention has acted as well.
func TestRetentionActsAfterACompactionOnDemand(t *testing.T) {
	b := start(t, settings(t, "DOZE_KAFKA_TOPICS=audit:1:cleanup.policy=compact,delete;min.cleanable.dirty.ratio=1;retention.bytes=1"))
	if err := putKeys(t, b, "audit", 10, "a", "b", "a"); err != nil {
		t.Fatal(err)
	}
	for _, sweep := range []string{"roll", "compact"} {
		if code, body := post(t, b, "/v1/topics/audit/"+sweep); code != http.StatusOK {
			t.Fatalf("%s: %d %s", sweep, code, body)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrListOffsetsRequest()
	at, of := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	of.Timestamp = -2 // the earliest
	at.Topic, at.Partitions = "audit", append(at.Partitions, of)
	req.Topics = append(req.Topics, at)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Topics[0].Partitions[0]; got.Offset != 3 || got.ErrorCode != 0 {
		t.Errorf("%+v", got)
	}
}

// ST-50: a stop waits for no compaction, neither for a sweep's nor for one that somebody has asked for and waits for: who does
// is told. What was there before is there after.
func TestAStopDoesNotWaitForACompaction(t *testing.T) {
	s := settings(t, "DOZE_KAFKA_TOPICS=audit:1:cleanup.policy=compact", "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND=1000000") // 20 seconds for one reading
	b := start(t, s)
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprint("k", i%3))
	}
	if err := putKeys(t, b, "audit", 100_000, keys...); err != nil {
		t.Fatal(err)
	}
	if code, body := post(t, b, "/v1/topics/audit/roll"); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	type answer struct {
		code int
		body []byte
	}
	answered := make(chan answer, 1)
	go func() {
		code, body := post(t, b, "/v1/topics/audit/compact")
		answered <- answer{code, body}
	}()
	some := regexp.MustCompile(`(?m)^doze_kafka_compaction_read_bytes(_total)? [1-9]`)
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, metrics := get(t, "http://"+b.HTTPAddr()+"/metrics")
		if some.MatchString(metrics) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is compacted")
		}
	}
	began := time.Now()
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("the stop took %v", took)
	if took > 2500*time.Millisecond { // half of what clients get to take their last answers
		t.Error("the stop took", took)
	}
	if a := <-answered; a.code != http.StatusServiceUnavailable || !bytes.Contains(a.body, []byte("the broker is stopping")) {
		t.Errorf("%d %s", a.code, a.body)
	}
	s.CleanerBytesPerSecond = 0
	b = start(t, s)
	if code, body := post(t, b, "/v1/topics/audit/compact"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if got := read(t, b, "audit", 199); !slices.Equal(got, []string{"197 k2", "198 k0", "199 k1"}) {
		t.Errorf("%q", got)
	}
}
