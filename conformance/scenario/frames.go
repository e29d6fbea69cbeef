package scenario

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("frames", frames)
	_ = judge.Register("frames-headers", frameHeaders)
	_ = judge.Register("frames-unsupported", unsupported)
	_ = judge.Register("frames-malformed", malformed)
	_ = judge.Register("frames-pipelined", pipelined)
)

func size(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// frames sends sizes that are right and wrong.
func frames(e *judge.Env) {
	c := e.Conn()
	good, unknownVersion := judge.Frame(18, 0, 1, false, nil), judge.Frame(18, 6, 1, true, nil)
	c.RawHead("right", good, 6)
	c.Raw("zero length", size(0))
	c.Raw("size -1", size(-1))
	c.Raw("size least", size(math.MinInt32))
	c.Raw("size one above socket.request.max.bytes", size(104857601))
	c.Raw("size most", size(math.MaxInt32))
	for n := 1; n < len(good)-4; n++ {
		cut := good[: 4+n : 4+n]
		c.Raw(fmt.Sprintf("header cut to %d bytes", n), append(size(int32(n)), cut[4:]...))
	}
	c.RawThenEnd("end in the middle of a size", good[:2])
	c.RawThenEnd("end in the middle of a frame", good[:9])
	c.RawThenEnd("end after a frame", unknownVersion)
	c.RawThenEnd("end after a frame and a half", append(append([]byte{}, unknownVersion...), good[:9]...))
	c.Raw("TLS client hello", []byte{0x16, 0x03, 0x01, 0x00, 0xc8, 0x01, 0x00, 0x00, 0xc4, 0x03, 0x03})
	c.Raw("HTTP request", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	c.RawHead("right after all that", good, 6)
}

// frameHeaders sends headers that are right and odd.
func frameHeaders(e *judge.Env) {
	header := func(key, version int16, correlation int32, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = binary.BigEndian.AppendUint32(b, uint32(correlation))
		b = append(b, rest...)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		return b
	}
	c := e.Conn()
	c.Raw("null client id", header(18, 6, 11, 0xff, 0xff, 0))
	c.Raw("null client id, no tags", header(18, 6, 11, 0xff, 0xff))
	c.Raw("empty client id", header(18, 6, 12, 0, 0, 0))
	c.Raw("negative correlation id", header(18, 6, -5, 0, 0, 0))
	c.Raw("client id of length -2", header(18, 6, 13, 0xff, 0xfe, 0))
	c.Raw("client id longer than the frame", header(18, 6, 14, 0, 9, 'a'))
	c.Raw("client id that is not UTF-8", header(18, 6, 15, 0, 1, 0xff, 0))
	c.Raw("no client id", header(18, 6, 16))
	c.Raw("half a client id length", header(18, 6, 17, 0))
	for _, x := range []struct {
		step string
		rest []byte
	}{
		{"no tags", []byte{0, 0, 0, 2, 'j', 2, '1', 0}},
		{"an unknown tag in the header", []byte{0, 0, 1, 99, 2, 'x', 'y', 2, 'j', 2, '1', 0}},
		{"an unknown tag in the body", []byte{0, 0, 0, 2, 'j', 2, '1', 1, 99, 1, 'x'}},
		{"tags out of order", []byte{0, 0, 2, 99, 0, 98, 0, 2, 'j', 2, '1', 0}},
		{"the same tag twice", []byte{0, 0, 2, 99, 0, 99, 0, 2, 'j', 2, '1', 0}},
		{"a tag longer than the frame", []byte{0, 0, 1, 99, 100, 'x'}},
		{"a varint without an end", []byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{"a count of tags beyond the frame", []byte{0, 0, 0xff, 0xff, 0x7f}},
	} {
		c.RawHead("header v2: "+x.step, header(18, 3, 20, x.rest...), 6) // the correlation id and the error
	}
}

// unsupported sends APIs and versions that a broker does not have: but for ApiVersions they close the connection.
func unsupported(e *judge.Env) {
	c := e.Conn()
	for _, key := range []int16{-1, -32768, 4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 95, 1000, 32767} {
		c.Raw(fmt.Sprintf("api key %d", key), judge.Frame(key, 0, 1, false, nil))
	}
	for _, api := range []struct {
		req      kmsg.Request
		min, max int16
	}{
		{kmsg.NewPtrProduceRequest(), 3, 13},
		{kmsg.NewPtrFetchRequest(), 4, 18},
		{kmsg.NewPtrListOffsetsRequest(), 1, 11},
		{kmsg.NewPtrMetadataRequest(), 0, 13},
		{kmsg.NewPtrFindCoordinatorRequest(), 0, 6},
		{kmsg.NewPtrCreateTopicsRequest(), 2, 7},
		{kmsg.NewPtrDeleteTopicsRequest(), 1, 6},
		{kmsg.NewPtrInitProducerIDRequest(), 0, 5},
		{kmsg.NewPtrOffsetForLeaderEpochRequest(), 2, 4},
		{kmsg.NewPtrDescribeConfigsRequest(), 1, 4},
		{kmsg.NewPtrDescribeClusterRequest(), 0, 2},
	} {
		for _, v := range []int16{api.min - 1, api.max + 1, 32767, -32768} {
			c.Do(fmt.Sprintf("%s v%d", kmsg.NameForKey(api.req.Key()), v), v, api.req)
		}
	}
}

// malformed sends bodies that are cut short, or too long: bytes after the body are nobody's.
func malformed(e *judge.Env) {
	c := e.Conn()
	for _, x := range []struct {
		req     kmsg.Request
		version int16
	}{
		{metadataNone(), 1}, {metadataNone(), 9}, {listOffsets(judge.Topic{Name: "x"}, -1), 1}, {listOffsets(judge.Topic{Name: "x"}, -1), 7},
		{kmsg.NewPtrDescribeClusterRequest(), 0}, {kmsg.NewPtrInitProducerIDRequest(), 0}, {kmsg.NewPtrInitProducerIDRequest(), 4},
	} {
		x.req.SetVersion(x.version)
		body := x.req.AppendTo(nil)
		name := fmt.Sprintf("%s v%d", kmsg.NameForKey(x.req.Key()), x.version)
		for n := range len(body) {
			c.Raw(fmt.Sprintf("%s cut to %d bytes", name, n), judge.Frame(x.req.Key(), x.version, 1, x.req.IsFlexible(), body[:n]))
		}
		c.RawHead(name+" with a byte too many", judge.Frame(x.req.Key(), x.version, 2, x.req.IsFlexible(), append(body, 0)), 4)
	}
	null := []byte{0xff, 0xff, 0xff, 0xff}
	c.Raw("Metadata v0 with null topics", judge.Frame(3, 0, 3, false, null))
	c.RawHead("Metadata v1 with -2 topics", judge.Frame(3, 1, 3, false, []byte{0xff, 0xff, 0xff, 0xfe}), 4)
	c.Raw("Metadata v1 with more topics than bytes", judge.Frame(3, 1, 3, false, []byte{0x7f, 0xff, 0xff, 0xff}))
	c.Raw("Metadata v1 with a null topic", judge.Frame(3, 1, 3, false, []byte{0, 0, 0, 1, 0xff, 0xff}))
	c.Raw("Metadata v1 with a topic of length -2", judge.Frame(3, 1, 3, false, []byte{0, 0, 0, 1, 0xff, 0xfe}))
	c.Raw("Metadata v9 with more topics than bytes", judge.Frame(3, 9, 3, true, []byte{0xff, 0xff, 0xff, 0xff, 0x07}))
	c.Raw("Metadata v9 with a null topic", judge.Frame(3, 9, 3, true, []byte{2, 0, 0, 0, 0, 0, 0}))
	c.Raw("CreateTopics v2 with null topics", judge.Frame(19, 2, 3, false, null))
	c.Raw("ListOffsets v1 with null topics", judge.Frame(2, 1, 3, false, append(null, null...)))
	c.Raw("Fetch v4 with null topics", judge.Frame(1, 4, 3, false, append(make([]byte, 17), null...)))
	c.Raw("DescribeConfigs v1 with null resources", judge.Frame(32, 1, 3, false, null))
	c.Raw("Produce v3 with null topics", judge.Frame(0, 3, 3, false, append([]byte{0xff, 0xff, 0, 1, 0, 0, 0, 1}, null...)))
}

func metadataNone() *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	return req
}

// pipelined sends several requests at once: the answers come in order, and a broken one ends the connection after the answers before it.
func pipelined(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	c.Pipeline("produce, list, fetch", 7, one(-1, topic, judge.Values("a")), listOffsets(topic, -1), one(1, topic, judge.Values("b")), listOffsets(topic, -1))
	good, bad := judge.Frame(18, 6, 1, true, nil), judge.Frame(7, 0, 2, false, nil)
	frame := c.Raw("a right request before an unknown one", append(append([]byte{}, good...), bad...))
	if frame != nil {
		c.Raw("then the end", nil)
	}
	c.Raw("an unknown request before a right one", append(append([]byte{}, bad...), good...))
}
