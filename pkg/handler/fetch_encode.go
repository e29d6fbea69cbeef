package handler

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// This file encodes Fetch responses by hand, v4 to v18, because kmsg would want
// the records in memory: here they are regions of files, which the server
// sends without reading them. A test proves every version equal to kmsg's.
//
//	throttle_time_ms  int32
//	error_code        int16                    v7
//	session_id        int32                    v7
//	responses         array of
//	  topic           string                   to v12
//	  topic_id        16 bytes                 v13
//	  partitions      array of
//	    partition_index          int32
//	    error_code               int16
//	    high_watermark           int64
//	    last_stable_offset       int64
//	    log_start_offset         int64         v5
//	    aborted_transactions     array of (producer_id int64, first_offset int64), may be null
//	    preferred_read_replica   int32         v11
//	    records                  bytes
//	    tag 0 diverging_epoch    int32, int64  v12
//	    tag 1 current_leader     int32, int32  v12
//	tag 0 node_endpoints                       v16
//
// From v12 on the message is flexible: lengths are unsigned varints of the
// length plus one, and structures end with their tagged fields (KIP-482).

const (
	flexibleFrom = 12 // the first flexible version
	topicIDsFrom = 13 // the first version with topic ids in place of names (KIP-516)
	leadersFrom  = 16 // the first version that tells the leader with some errors (KIP-951)
)

// What a response and each of its partitions take as a rule, in bytes.
const (
	headerRoom    = 64
	partitionRoom = 44
)

// fetchHeader is the response without its topics.
type fetchHeader struct {
	version   int16
	errorCode int16
	sessionID int32
	tellNode  bool // with the address of the current leaders that partitions tell (v16)
	nodeID    int32
	nodeHost  string
	nodePort  int32
}

// A fetchResult is the answer for one partition.
type fetchResult struct {
	at        int // its place in the session's order
	topic     string
	topicID   kafka.TopicID
	partition int32
	errorCode int16

	highWatermark, lastStable, logStart int64
	aborted                             []commitlog.AbortedTransaction // nil is null
	region                              segment.Region

	diverges     bool // then the client has to truncate (KIP-595)
	divergeEpoch int32
	divergeEnd   int64

	tellLeader bool // current_leader is this node, with the broker epoch
	epoch      int32
}

// fail makes r the answer for a partition that cannot be read.
func (r *fetchResult) fail(code int16) {
	r.errorCode = code
	r.highWatermark, r.lastStable, r.logStart = -1, -1, -1
	r.aborted, r.diverges = nil, false
	r.release()
}

// failUnread is fail where no read was tried: Kafka leaves the aborted transactions empty then (FetchResponse.partitionResponse).
func (r *fetchResult) failUnread(code int16) {
	r.fail(code)
	r.aborted = []commitlog.AbortedTransaction{}
}

// release lets the region go.
func (r *fetchResult) release() {
	if r.region.Release != nil {
		r.region.Release()
	}
	r.region = segment.Region{}
}

// sameTopic says whether two results share a topic's entry. Only neighbours do, as in Kafka (FetchResponse.matchingTopic).
func (r *fetchResult) sameTopic(o *fetchResult) bool {
	return r.topicID == o.topicID && r.topic == o.topic
}

// A fetchEncoder makes a response body. It is reused.
type fetchEncoder struct {
	buf   []byte
	files []fileCut
	parts []server.Part
}

// A fileCut is a region that goes out between buf[:at] and buf[at:].
type fileCut struct {
	at     int
	region *segment.Region
}

// encode returns the parts of the body, valid until the next encode.
func (e *fetchEncoder) encode(h *fetchHeader, results []fetchResult) []server.Part {
	e.buf = slices.Grow(e.buf[:0], headerRoom+partitionRoom*len(results)) // at once: a client that does not read holds it
	e.files = slices.Grow(e.files[:0], len(results))
	flexible := h.version >= flexibleFrom
	e.int32(0) // throttle_time_ms
	if h.version >= 7 {
		e.int16(h.errorCode)
		e.int32(h.sessionID)
	}
	e.arrayLen(topicRuns(results), flexible)
	for len(results) > 0 {
		n := 1
		for n < len(results) && results[n].sameTopic(&results[0]) {
			n++
		}
		if h.version < topicIDsFrom {
			e.string(results[0].topic, flexible)
		} else {
			e.buf = append(e.buf, results[0].topicID[:]...)
		}
		e.arrayLen(n, flexible)
		for i := range results[:n] {
			e.partition(h, &results[i], flexible)
		}
		if flexible {
			e.buf = append(e.buf, 0)
		}
		results = results[n:]
	}
	switch {
	case !flexible:
	case h.version >= leadersFrom && h.tellNode:
		e.nodeEndpoints(h)
	default:
		e.buf = append(e.buf, 0)
	}
	return e.assemble()
}

// topicRuns counts the topic entries.
func topicRuns(results []fetchResult) int {
	n := 0
	for i := range results {
		if i == 0 || !results[i].sameTopic(&results[i-1]) {
			n++
		}
	}
	return n
}

func (e *fetchEncoder) partition(h *fetchHeader, r *fetchResult, flexible bool) {
	e.int32(r.partition)
	e.int16(r.errorCode)
	e.int64(r.highWatermark)
	e.int64(r.lastStable)
	if h.version >= 5 {
		e.int64(r.logStart)
	}
	if r.aborted == nil {
		e.arrayLen(-1, flexible)
	} else {
		e.arrayLen(len(r.aborted), flexible)
	}
	for _, a := range r.aborted {
		e.int64(a.ProducerID)
		e.int64(a.FirstOffset)
		if flexible {
			e.buf = append(e.buf, 0)
		}
	}
	if h.version >= 11 {
		e.int32(-1) // preferred_read_replica: there is none but this
	}
	e.arrayLen(r.region.Length, flexible) // bytes have the same form of length
	if r.region.Length > 0 {
		e.files = append(e.files, fileCut{at: len(e.buf), region: &r.region})
	}
	if flexible {
		e.tags(h, r)
	}
}

// tags writes a partition's tagged fields, each with its size.
func (e *fetchEncoder) tags(h *fetchHeader, r *fetchResult) {
	leader := r.tellLeader && h.version >= leadersFrom
	n := byte(0)
	if r.diverges {
		n++
	}
	if leader {
		n++
	}
	e.buf = append(e.buf, n)
	if r.diverges {
		e.buf = append(e.buf, 0, 4+8+1)
		e.int32(r.divergeEpoch)
		e.int64(r.divergeEnd)
		e.buf = append(e.buf, 0)
	}
	if leader {
		e.buf = append(e.buf, 1, 4+4+1)
		e.int32(h.nodeID)
		e.int32(r.epoch)
		e.buf = append(e.buf, 0)
	}
}

// nodeEndpoints writes the response's one tagged field: an array of one node without a rack.
func (e *fetchEncoder) nodeEndpoints(h *fetchHeader) {
	e.buf = append(e.buf, 1, 0)
	host := len(h.nodeHost)
	size := 1 + 4 + uvarintLen(uint32(host)+1) + host + 4 + 1 + 1
	e.buf = binary.AppendUvarint(e.buf, uint64(size))
	e.arrayLen(1, true)
	e.int32(h.nodeID)
	e.string(h.nodeHost, true)
	e.int32(h.nodePort)
	e.buf = append(e.buf, 0, 0) // no rack, no tags
}

// uvarintLen is the length of v as an unsigned varint.
func uvarintLen(v uint32) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// assemble cuts the bytes where files go. It comes last, because buf may move while it grows.
func (e *fetchEncoder) assemble() []server.Part {
	e.parts = slices.Grow(e.parts[:0], 2*len(e.files)+1) // exactly: a client that does not read holds it
	from := 0
	for _, f := range e.files {
		e.parts = append(e.parts, server.Part{Bytes: e.buf[from:f.at:f.at]},
			server.Part{File: f.region.File, Offset: f.region.Offset, Length: f.region.Length})
		from = f.at
	}
	e.parts = append(e.parts, server.Part{Bytes: e.buf[from:]})
	return e.parts
}

func (e *fetchEncoder) int16(v int16) { e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(v)) }

func (e *fetchEncoder) int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

func (e *fetchEncoder) int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

// arrayLen writes the length of an array, or of bytes; -1 is null.
func (e *fetchEncoder) arrayLen(n int, flexible bool) {
	if flexible {
		e.buf = binary.AppendUvarint(e.buf, uint64(n+1))
	} else {
		e.int32(int32(n))
	}
}

// string writes a string; a topic's name and a host fit into its int16 length.
func (e *fetchEncoder) string(s string, flexible bool) {
	s = s[:min(len(s), math.MaxInt16)]
	if flexible {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(s)+1))
	} else {
		e.int16(int16(len(s)))
	}
	e.buf = append(e.buf, s...)
}
