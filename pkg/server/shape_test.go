package server

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// An array that claims more elements than there are is refused before it is
// made, in a frame of any size.
func TestADeclaredArrayLengthAllocatesNothing(t *testing.T) {
	const body = 32 << 20
	for key, prefix := range map[kmsg.Key][]byte{
		kmsg.Metadata:     {0xff, 0xff, 0xff, 0x07},                              // topics
		kmsg.Produce:      {0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x07},         // no transaction, acks, timeout, topics
		kmsg.CreateTopics: {0xff, 0xff, 0xff, 0x02},                              // topics
		kmsg.OffsetCommit: {2, 'g', 0, 0, 0, 1, 2, 'm', 0, 0xff, 0xff, 0xff, 07}, // group, generation, member, instance, topics
	} {
		req := kmsg.RequestForKey(int16(key))
		req.SetVersion(map[kmsg.Key]int16{kmsg.Metadata: 9, kmsg.Produce: 9, kmsg.CreateTopics: 7, kmsg.OffsetCommit: 8}[key])
		b := append(prefix, make([]byte, body)...)
		for i := len(prefix); i < len(b); i++ {
			b[i] = 0xff // what is there is no element
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decodeBody(req, b)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: a body of rubbish was decoded", key.Name())
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", key.Name(), n)
		}
	}
}

// Elements that really are there are bounded too.
func TestMoreElementsThanARequestMayHaveAreRefused(t *testing.T) {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(8)
	const topics = 4 << 20
	b := binary.BigEndian.AppendUint32(nil, topics)
	b = append(b, make([]byte, 2*topics+3)...) // empty names
	if err := decodeBody(req, b); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
}

func TestLargeRecordsPassTheCheck(t *testing.T) {
	req := produce(-1, "topic", make([]byte, 5<<20))
	b := req.AppendTo(nil)
	got := kmsg.NewPtrProduceRequest()
	got.SetVersion(9)
	if err := decodeBody(got, b); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Topics[0].Partitions[0].Records); n != 5<<20 {
		t.Errorf("%d bytes of records", n)
	}
}

// Recorded: create-topics-errors. Such a string is longer than any body that is decoded unchecked.
func TestALongStringIsRefused(t *testing.T) {
	for n, want := range map[int]error{32767: nil, 32768: errLongString} {
		value := strings.Repeat("x", n)
		req := kmsg.NewPtrCreateTopicsRequest()
		req.SetVersion(7)
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "c", Value: &value})
		req.Topics = append(req.Topics, topic)
		got := kmsg.NewPtrCreateTopicsRequest()
		got.SetVersion(7)
		if err := decodeBody(got, req.AppendTo(nil)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Every body that kmsg can decode, but for strings that are too long, the check lets through, unless it is too large.
func FuzzShape(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	eachRequest(func(req kmsg.Request) {
		version := req.GetVersion()
		fill(r, reflect.ValueOf(req).Elem(), 0)
		req.SetVersion(version)
		f.Add(req.Key(), version, req.AppendTo(nil))
	})
	f.Fuzz(func(t *testing.T, key, version int16, b []byte) {
		req := kmsg.RequestForKey(key)
		if req == nil || version < 0 || version > req.MaxVersion() {
			return
		}
		req.SetVersion(version)
		checked := shapeFor(key, version).check(b)
		if err := req.ReadFrom(b); err == nil && errors.Is(checked, errCutShort) {
			t.Errorf("%s v%d: kmsg decodes what the check refuses: %x", kmsg.NameForKey(key), version, b)
		}
	})
}

func BenchmarkShapeCheckOfAProduceRequest(b *testing.B) {
	body := produce(-1, "topic", make([]byte, 1<<20)).AppendTo(nil)
	s := shapeFor(0, 9)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.check(body); err != nil {
			b.Fatal(err)
		}
	}
}
