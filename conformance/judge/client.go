package judge

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Client is a franz-go client of the broker, with the client id "judge". It is closed when the scenario ends. It looks topics up as often as
// it needs to, so that no result depends on how old its metadata is.
func (e *Env) Client(opts ...kgo.Opt) *kgo.Client {
	e.t.Helper()
	defaults := []kgo.Opt{kgo.SeedBrokers(e.Addr), kgo.ClientID("judge"), kgo.MetadataMinAge(10 * time.Millisecond), kgo.DisableClientMetrics()}
	client, err := kgo.NewClient(append(defaults, opts...)...)
	if err != nil {
		e.Fatalf("client: %v", err)
	}
	e.t.Cleanup(client.Close)
	return client
}

// Admin is a kadm client of the broker that has asked nothing yet.
func (e *Env) Admin() *kadm.Client { return kadm.NewClient(e.Client()) }

// Args are what a call of a client library is given: plain values, and slices of them.
type Args map[string]any

// Call calls a function of a client library and records its result instead of what went over the wire: structs, slices of them and plain
// values, under the names of their fields, masked like the fields of messages. Where the library returns a map, or an order of its own, call
// returns it in order, or Sorted does. An error is told as the code that the broker gave, if it gave one. The context ends when a broker has
// had more than enough time.
func (e *Env) Call(step, function string, args Args, call func(context.Context) (any, error), opts ...Option) {
	e.t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	request := map[string]any{}
	for name, v := range args {
		request[name] = e.masks.value(name, v)
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	result, err := call(ctx)
	response := map[string]any{"Error": e.masks.text(ErrorText(err)), "Result": e.masks.value("Result", result)}
	hideTexts(response, o.texts)
	sortLists(response, o.sorted)
	e.record(Exchange{Step: step, API: function, Request: request, Response: response})
}

// value renders what is no message.
func (m *masks) value(name string, v any) any {
	if v == nil {
		return nil
	}
	return m.field(name, reflect.ValueOf(v))
}

// ErrorText is the name and code of the error that a broker gave, as ErrorName has it; else what the client says.
func ErrorText(err error) string {
	if err == nil {
		return ErrorName(0)
	}
	if shards, ok := errors.AsType[*kadm.ShardErrors](err); ok && len(shards.Errs) > 0 {
		err = shards.Errs[0].Err // the scenarios have one broker
	}
	if given, ok := errors.AsType[*kerr.Error](err); ok {
		return ErrorName(given.Code)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no result in time"
	}
	return err.Error()
}

// ClientRecord is a record as a client has it, once it was produced or consumed.
type ClientRecord struct {
	Topic         string
	Partition     int32
	Offset        int64
	LeaderEpoch   int32
	Timestamp     int64  // milliseconds
	TimestampType string // "CreateTime" or "LogAppendTime"
	Codec         string
	ProducerID    int64
	ProducerEpoch int16
	Key, Value    []byte
	Headers       []ClientHeader
	Error         string // of a produced one
}

// ClientHeader is a header of a ClientRecord.
type ClientHeader struct {
	Key   string
	Value []byte
}

// ClientRecordOf is what is recorded of a record. A producer id in it is one that the broker gave out.
func (e *Env) ClientRecordOf(r *kgo.Record, err error) ClientRecord {
	types := map[int8]string{-1: "none", 0: "CreateTime", 1: "LogAppendTime"}
	codecs := map[uint8]string{0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
	c := ClientRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Timestamp: r.Timestamp.UnixMilli(),
		TimestampType: types[r.Attrs.TimestampType()], Codec: codecs[r.Attrs.CompressionType()], ProducerID: r.ProducerID, ProducerEpoch: r.ProducerEpoch,
		Key: r.Key, Value: r.Value, Error: ErrorText(err)}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, ClientHeader(h))
	}
	if r.ProducerID >= 0 {
		e.masks.learnProducer(r.ProducerID)
	}
	return c
}
