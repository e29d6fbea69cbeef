package judge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func metadataOnly(t *testing.T) *Env {
	t.Helper()
	addr := fakeBroker(t, func(_ int16, correlation uint32) ([]byte, bool) { return fakeMetadata(correlation), true })
	e := NewEnv(t, "s", addr, false)
	t.Cleanup(e.Close)
	return e
}

// CF-1: the result of a client call is normalised.
func TestACallIsRecordedByItsMaskedAndSortedResult(t *testing.T) {
	e := metadataOnly(t)
	type topic struct {
		Name, Host string
		Port       int32
		TopicID    [16]byte
		Since      int64
		ProducerID int64
	}
	e.masks.learnProducer(4711)
	now := e.Now(0)
	result := []topic{{Name: "b", Host: e.masks.host, Port: e.masks.port, TopicID: [16]byte{1}, Since: now}, {Name: "a", Since: Base, ProducerID: 4711}}
	e.Call("topics", "kadm.Topics", Args{"Names": []string{"a", "b"}, "After": now, "None": nil}, func(context.Context) (any, error) {
		return result, fmt.Errorf("at %s: %w", e.Addr, errors.New("odd"))
	}, Sorted("Result"))
	want := Exchange{Step: "topics", API: "kadm.Topics", Request: map[string]any{"Names": []any{"a", "b"}, "After": "<now>", "None": nil},
		Response: map[string]any{"Error": "at <host>:<port>: odd", "Result": []any{
			map[string]any{"Name": "a", "Host": "", "Port": int32(0), "TopicID": "00000000000000000000000000000000", "Since": Base, "ProducerID": "<pid1>"},
			map[string]any{"Name": "b", "Host": "<host>", "Port": "<port>", "TopicID": "<id:b>", "Since": "<now>", "ProducerID": int64(0)}}}}
	if got := e.Exchanges()[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAnErrorIsToldAsTheCodeThatTheBrokerGave(t *testing.T) {
	shards := &kadm.ShardErrors{Errs: []kadm.ShardError{{Err: kerr.UnknownTopicOrPartition}}}
	for want, err := range map[string]error{
		"NONE":                           nil,
		"INVALID_TIMESTAMP (32)":         fmt.Errorf("record: %w", kerr.InvalidTimestamp),
		"UNKNOWN_TOPIC_OR_PARTITION (3)": fmt.Errorf("all failed: %w", shards),
		"no result in time":              fmt.Errorf("poll: %w", context.DeadlineExceeded),
		"odd":                            errors.New("odd"),
	} {
		if got := ErrorText(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}

func TestARecordIsToldWithTheProducerThatTheBrokerNamed(t *testing.T) {
	e := metadataOnly(t)
	r := &kgo.Record{Topic: "t", Partition: 2, Offset: 7, LeaderEpoch: 1, Timestamp: time.UnixMilli(Base), ProducerID: 99, ProducerEpoch: 3, Value: []byte("v"),
		Headers: []kgo.RecordHeader{{Key: "h"}}, Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{})}
	got := e.masks.value("Result", e.ClientRecordOf(r, kerr.MessageTooLarge))
	want := map[string]any{"Topic": "t", "Partition": int32(2), "Offset": int64(7), "LeaderEpoch": int32(1), "Timestamp": Base, "TimestampType": "CreateTime", "Codec": "none",
		"ProducerID": "<pid1>", "ProducerEpoch": int16(3), "Key": nil, "Value": "v", "Headers": []any{map[string]any{"Key": "h", "Value": nil}}, "Error": "MESSAGE_TOO_LARGE (10)"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAClientAsksTheBrokerOfTheScenario(t *testing.T) {
	e := metadataOnly(t)
	client := e.Client(kgo.ClientID("other"))
	if seeds, id := client.OptValue(kgo.SeedBrokers), client.OptValue(kgo.ClientID); !reflect.DeepEqual(seeds, []string{e.Addr}) || id != "other" {
		t.Errorf("seeds %v, client id %v", seeds, id)
	}
}
