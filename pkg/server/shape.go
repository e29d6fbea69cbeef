package server

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
)

// maxDecodedBytes bounds what the arrays of one request take once decoded:
// about a million partitions.
const maxDecodedBytes = 64 << 20

var (
	errCutShort = errors.New("body is cut short")
	errTooMany  = errors.New("body has more array elements than a request may have")
	// errLongString is a compact string that one with an int16 length could not be (Readable.readString).
	errLongString = errors.New("body has a string of more than 32767 bytes")
)

// A shape is the layout of a request on the wire, known so that the lengths of
// arrays can be checked against what is really there before kmsg allocates
// them: an array of 50 million topics is announced in five bytes, and kmsg
// believes it if the frame is as long as so many topics could be at the least.
//
// Shapes are not written down a second time: they are found by encoding kmsg's
// own request with one field changed after the other, and looking at what
// changes. A test holds them against every API and version.
type shape struct {
	flexible bool
	fields   []field
	opaque   bool // has something that probing does not know: see check
}

// A field is one part of a structure on the wire.
type field struct {
	kind  fieldKind
	fixed int     // fixedField: bytes
	elem  int     // arrays: bytes of an element in memory
	items []field // arrays: the fields of an element
}

type fieldKind int8

const (
	fixedField  fieldKind = iota
	stringField           // int16 or compact length
	bytesField            // int32 or compact length
	arrayField            // of structures
	plainArray            // of fixed size or strings
	tagsField             // at the end of each structure of a flexible version
)

type shapeKey struct{ key, version int16 }

var shapes sync.Map // shapeKey -> *shape

// shapeFor returns the shape of a request, which is probed at first use.
func shapeFor(key, version int16) *shape {
	if s, ok := shapes.Load(shapeKey{key, version}); ok {
		return s.(*shape)
	}
	s := probe(key, version)
	shapes.Store(shapeKey{key, version}, s)
	return s
}

// opaqueBody is how long a body of unknown shape may be.
const opaqueBody = 1 << 20

// check says whether the arrays of a body are as long as they claim to be, and
// not too long together.
func (s *shape) check(b []byte) error {
	if s.opaque {
		if len(b) > opaqueBody {
			return errTooMany
		}
		return nil
	}
	w := walker{b: b, flexible: s.flexible, room: maxDecodedBytes}
	w.fields(s.fields)
	return w.err
}

// A walker goes over a body without keeping anything of it.
type walker struct {
	b        []byte
	flexible bool
	room     int
	err      error
}

func (w *walker) fields(fields []field) {
	for i := range fields {
		if w.err != nil {
			return
		}
		w.field(&fields[i])
	}
}

func (w *walker) field(f *field) {
	switch f.kind {
	case fixedField:
		w.skip(f.fixed)
	case stringField:
		n := w.length(2)
		if n > math.MaxInt16 {
			w.err = errLongString
		}
		w.skip(n)
	case bytesField:
		w.skip(w.length(4))
	case arrayField, plainArray:
		n := w.length(4)
		if w.room -= n * f.elem; w.room < 0 {
			w.err = errTooMany
		}
		for ; n > 0 && w.err == nil; n-- {
			w.fields(f.items)
		}
	case tagsField:
		w.tags()
	}
}

// tags skips tagged fields, which kmsg keeps in a map if it knows none of them.
func (w *walker) tags() {
	count, _, _ := uvarint(w.b)
	rest, ok := skipTags(w.b)
	if !ok {
		w.err = errCutShort
		return
	}
	w.b = rest
	if w.room -= int(count) * 64; w.room < 0 {
		w.err = errTooMany
	}
}

func (w *walker) skip(n int) {
	if n > len(w.b) {
		w.err = errCutShort
		return
	}
	w.b = w.b[n:]
}

// length cuts a length of size bytes, or a compact one, off; null is 0.
func (w *walker) length(size int) int {
	if w.flexible {
		n, rest, ok := uvarint(w.b)
		if !ok {
			w.err = errCutShort
			return 0
		}
		w.b = rest
		return max(int(n)-1, 0)
	}
	if len(w.b) < size {
		w.err = errCutShort
		return 0
	}
	n := int(int16(binary.BigEndian.Uint16(w.b)))
	if size == 4 {
		n = int(int32(binary.BigEndian.Uint32(w.b)))
	}
	w.b = w.b[size:]
	return max(n, 0)
}
