package handler

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// memFile is a file of bytes: just enough of one to be a region.
type memFile struct {
	vfs.File
	b []byte
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.b[min(off, int64(len(f.b))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// join reads all parts of a body, as the connection's writer would send them.
func join(t testing.TB, parts []server.Part) []byte {
	t.Helper()
	var out []byte
	for _, p := range parts {
		if p.File == nil {
			out = append(out, p.Bytes...)
			continue
		}
		b := make([]byte, p.Length)
		if _, err := p.File.ReadAt(b, p.Offset); err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// generator makes random fetch responses in both forms.
type generator struct{ *rand.Rand }

func (g generator) response(version int16) (fetchHeader, []fetchResult) {
	h := fetchHeader{version: version, tellNode: g.IntN(2) == 0, nodeID: g.Int32(), nodeHost: strings.Repeat("h", g.IntN(300)), nodePort: g.Int32N(65536)}
	if version >= 7 {
		h.sessionID = g.Int32()
		if g.IntN(4) == 0 {
			h.errorCode = kerr.FetchSessionIDNotFound.Code
		}
	}
	var results []fetchResult
	for i := range g.IntN(4) {
		r := fetchResult{topic: fmt.Sprintf("%s-%d", strings.Repeat("t", g.IntN(200)), i)}
		if version >= topicIDsFrom {
			r.topic, r.topicID = "", kafka.NewTopicID()
		}
		for p := range 1 + g.IntN(3) {
			r.partition = int32(p)
			results = append(results, g.result(r))
		}
	}
	return h, results
}

func (g generator) result(r fetchResult) fetchResult {
	r.highWatermark, r.lastStable, r.logStart = g.Int64(), g.Int64(), g.Int64()
	switch g.IntN(3) {
	case 0:
		r.aborted = []commitlog.AbortedTransaction{}
	case 1:
		for range 1 + g.IntN(200) {
			r.aborted = append(r.aborted, commitlog.AbortedTransaction{ProducerID: g.Int64(), FirstOffset: g.Int64()})
		}
	}
	switch g.IntN(4) {
	case 0:
		r.fail(kerr.OffsetOutOfRange.Code)
	case 1:
		r.fail(kerr.FencedLeaderEpoch.Code)
		r.tellLeader, r.epoch = true, g.Int32()
	case 2:
		r.diverges, r.divergeEpoch, r.divergeEnd = true, g.Int32(), g.Int64()
	default:
		b := make([]byte, g.IntN(1<<uint(g.IntN(15))))
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		if len(b) > 0 {
			off := g.IntN(len(b))
			r.region = segment.Region{File: &memFile{b: b}, Offset: int64(off), Length: len(b) - off}
		}
	}
	return r
}

// expect is the response in kmsg's form.
func expect(t testing.TB, h *fetchHeader, results []fetchResult) *kmsg.FetchResponse {
	want := kmsg.NewPtrFetchResponse()
	want.Version, want.ErrorCode, want.SessionID = h.version, h.errorCode, h.sessionID
	for i := range results {
		r := &results[i]
		if i == 0 || !r.sameTopic(&results[i-1]) {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = r.topic, r.topicID
			want.Topics = append(want.Topics, topic)
		}
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode = r.partition, r.errorCode
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = r.highWatermark, r.lastStable, r.logStart
		if r.aborted != nil {
			p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		}
		for _, a := range r.aborted {
			k := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			k.ProducerID, k.FirstOffset = a.ProducerID, a.FirstOffset
			p.AbortedTransactions = append(p.AbortedTransactions, k)
		}
		p.RecordBatches = []byte{}
		if r.region.Length > 0 {
			p.RecordBatches = join(t, []server.Part{{File: r.region.File, Offset: r.region.Offset, Length: r.region.Length}})
		}
		if r.diverges {
			p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = r.divergeEpoch, r.divergeEnd
		}
		if r.tellLeader && h.version >= leadersFrom {
			p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = h.nodeID, r.epoch
		}
		last := &want.Topics[len(want.Topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	if h.tellNode && h.version >= leadersFrom {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port = h.nodeID, h.nodeHost, h.nodePort
		want.Brokers = append(want.Brokers, b)
	}
	return want
}

// The hand-written encoder is kmsg's, byte for byte, in every version.
func TestFetchEncoderEqualsKmsg(t *testing.T) {
	var e fetchEncoder // reused, as the handler does
	for version := int16(4); version <= 18; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(uint64(version), 1))}
			for range 300 {
				h, results := g.response(version)
				got := join(t, e.encode(&h, results))
				want := expect(t, &h, results).AppendTo(nil)
				if !bytes.Equal(got, want) {
					t.Fatalf("encoded\n%x\nwant\n%x", got, want)
				}
			}
		})
	}
}

// FuzzFetchEncoder looks for a response that kmsg encodes otherwise.
func FuzzFetchEncoder(f *testing.F) {
	f.Add(uint64(1), uint8(0))
	f.Add(uint64(2), uint8(14))
	f.Fuzz(func(t *testing.T, seed uint64, v uint8) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		h, results := g.response(4 + int16(v%15))
		var e fetchEncoder
		if got, want := join(t, e.encode(&h, results)), expect(t, &h, results).AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("v%d: encoded\n%x\nwant\n%x", h.version, got, want)
		}
	})
}
