package server

import (
	"encoding/binary"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// minHeader is the length of a request header with a null client id and no tags.
const minHeader = 10

// unguardedBody is the length up to which a body is decoded without looking at
// its arrays and strings first: kmsg takes at most about 40 bytes of memory for each that
// an array of a body pretends to have, and no string in it is longer than one may be.
const unguardedBody = math.MaxInt16

// decode reads the header and the body of the frame of x. Its errors close the
// connection, as they do in Kafka (SocketServer.Processor).
func (c *conn) decode(x *exchange) error {
	b := x.frame.b
	req := &x.req
	req.Conn = &c.info
	req.Key = int16(binary.BigEndian.Uint16(b))
	req.Version = int16(binary.BigEndian.Uint16(b[2:]))
	x.correlation = int32(binary.BigEndian.Uint32(b[4:]))
	clientID, b, ok := nullableString(b[8:])
	if !ok {
		return malformedf("request header: client id is cut short")
	}
	req.ClientID = c.internClientID(clientID)

	spec, ok := c.s.opts.Handler.Lookup(req.Key)
	if !ok || req.Key < 0 || req.Key >= maxKeys {
		return unspokenf(c.s.toldFor(req.Key), "API key %d (%s) is not spoken", req.Key, kmsg.NameForKey(req.Key))
	}
	x.overlap = spec.Overlap
	if req.Version < spec.Min || req.Version > spec.Max {
		if spec.AnyVersion {
			return checkAnyHeader(req, b) // the handler answers for it, with a nil Body
		}
		return unspokenf(c.s.toldFor(req.Key), "%s v%d is not spoken: v%d to v%d are, as in Kafka 4", kmsg.NameForKey(req.Key), req.Version, spec.Min, spec.Max)
	}
	body := kmsg.RequestForKey(req.Key)
	if body == nil {
		return malformedf("API key %d is unknown", req.Key)
	}
	body.SetVersion(req.Version)
	x.flexible = body.IsFlexible()
	if x.flexible {
		if b, ok = skipTags(b); !ok {
			return malformedf("request header: tagged fields are cut short")
		}
	}
	if err := decodeBody(body, b); err != nil {
		return malformedf("%s v%d: %v", kmsg.NameForKey(req.Key), req.Version, err)
	}
	req.Body = body
	return nil
}

// checkAnyHeader is about a version that is not spoken: it has the header of the
// newest that is, of which only the body is not read.
func checkAnyHeader(req *Request, b []byte) error {
	newest := kmsg.RequestForKey(req.Key)
	newest.SetVersion(req.Version)
	if _, ok := skipTags(b); newest.IsFlexible() && !ok {
		return malformedf("request header: tagged fields are cut short")
	}
	return nil
}

// decodeBody decodes a body whose strings and bytes then alias b. Bytes after
// it are ignored, as in Kafka. A body whose decoded form would be out of
// proportion is refused before it is made.
func decodeBody(body kmsg.Request, b []byte) error {
	if len(b) > unguardedBody {
		if err := shapeFor(body.Key(), body.GetVersion()).check(b); err != nil {
			return err
		}
	}
	if u, ok := body.(kmsg.UnsafeReadFrom); ok {
		return u.UnsafeReadFrom(b)
	}
	return body.ReadFrom(b)
}

// internClientID makes a string of a client id, the same one as long as the
// client keeps it.
func (c *conn) internClientID(b []byte) string {
	if string(b) != c.clientID { // does not allocate
		c.clientID = string(b)
	}
	return c.clientID
}

// nullableString cuts a string with an int16 length off b. Null, any negative
// length as in Kafka, is empty.
func nullableString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	if n < 0 {
		return nil, b, true
	}
	if n > len(b) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// skipTags cuts the tagged fields (KIP-482) off b.
func skipTags(b []byte) (rest []byte, ok bool) {
	count, b, ok := uvarint(b)
	for ; ok && count > 0; count-- {
		var size uint32
		if _, b, ok = uvarint(b); !ok {
			break
		}
		if size, b, ok = uvarint(b); !ok || uint64(size) > uint64(len(b)) {
			return nil, false
		}
		b = b[size:]
	}
	return b, ok
}

// uvarint cuts an unsigned varint of at most 32 bits off b.
func uvarint(b []byte) (v uint32, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint32(b[0]), b[1:], true
	}
	u, n := binary.Uvarint(b[:min(len(b), 5)])
	if n <= 0 || u > 1<<32-1 {
		return 0, nil, false
	}
	return uint32(u), b[n:], true
}
