package server

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxDecodedBytes bounds what the arrays of one request take once decoded:
// about a million partitions.
const maxDecodedBytes = 64 << 20

var (
	errCutShort = errors.New("body is cut short")
	errTooMany  = errors.New("body has more array elements than a request may have")
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
		w.skip(w.length(2))
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

// probe finds the shape of a request.
func probe(key, version int16) *shape {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	p := prober{req: req}
	s := &shape{flexible: req.IsFlexible()}
	s.fields = p.structure(reflect.ValueOf(req).Elem(), s.flexible)
	s.opaque = p.opaque
	return s
}

// A prober changes fields of req and looks at its encoding.
type prober struct {
	req    kmsg.Request
	opaque bool
}

// encoding is what req looks like with v set to a value.
func (p *prober) encoding(v, value reflect.Value) []byte {
	v.Set(value)
	return p.req.AppendTo(nil)
}

// structure finds the fields of v, which is part of req.
func (p *prober) structure(v reflect.Value, flexible bool) []field {
	var fields []field
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Version" && v.Addr().Interface() == any(p.req) || name == "UnknownTags" {
			continue
		}
		before := reflect.New(v.Field(i).Type()).Elem()
		before.Set(v.Field(i))
		fields = append(fields, p.field(v.Field(i), flexible)...)
		v.Field(i).Set(before)
	}
	if flexible {
		fields = append(fields, field{kind: tagsField})
	}
	return fields
}

// field finds how v is encoded: nothing, if this version has no such field or
// has it as a tagged one, which is skipped with all others.
func (p *prober) field(v reflect.Value, flexible bool) []field {
	t := v.Type()
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Float64, reflect.Array:
		if p.inline(v, fixedValues(v)) {
			return []field{{kind: fixedField, fixed: int(t.Size())}}
		}
	case reflect.String:
		if p.inline(v, grownValues(t, func(n int) reflect.Value { return reflect.ValueOf("xx"[:n]).Convert(t) })) {
			return []field{{kind: stringField}}
		}
	case reflect.Pointer:
		return p.pointer(v)
	case reflect.Slice:
		return p.slice(v, flexible)
	case reflect.Struct:
		// Structures within a structure are tagged in every request there is
		// (Fetch's ReplicaState): none of their parts shows as inline.
		if len(p.structure(v, false)) > 0 {
			p.opaque = true
		}
	default:
		p.opaque = true
	}
	return nil
}

// pointer finds how a nullable string is encoded; a nullable structure is not
// known.
func (p *prober) pointer(v reflect.Value) []field {
	t := v.Type()
	if t.Elem().Kind() == reflect.String {
		values := grownValues(t, func(n int) reflect.Value {
			if s := "xx"[:n]; n > 0 {
				return reflect.ValueOf(&s)
			}
			return reflect.Zero(t) // null is as long as empty
		})
		if p.inline(v, values) {
			return []field{{kind: stringField}}
		}
		return nil
	}
	without := p.encoding(v, reflect.Zero(t))
	value := reflect.New(t.Elem())
	if d, ok := value.Interface().(interface{ Default() }); ok {
		d.Default()
	}
	if !slices.Equal(without, p.encoding(v, value)) {
		p.opaque = true
	}
	return nil
}

// slice finds how bytes or an array is encoded.
func (p *prober) slice(v reflect.Value, flexible bool) []field {
	t := v.Type()
	values := grownValues(t, func(n int) reflect.Value {
		if n == 0 {
			return reflect.Zero(t)
		}
		s := reflect.MakeSlice(t, n, n)
		for i := range n {
			if d, ok := s.Index(i).Addr().Interface().(interface{ Default() }); ok {
				d.Default()
			}
		}
		return s
	})
	if !p.inline(v, values) {
		return nil
	}
	elem := t.Elem()
	f := field{kind: plainArray, elem: int(elem.Size())}
	switch elem.Kind() {
	case reflect.Uint8:
		f = field{kind: bytesField}
	case reflect.String:
		f.items = []field{{kind: stringField}}
	case reflect.Struct:
		v.Set(values[1])
		f.kind = arrayField
		f.items = p.structure(v.Index(0), flexible)
	case reflect.Slice, reflect.Pointer, reflect.Map:
		p.opaque = true
	default:
		f.items = []field{{kind: fixedField, fixed: int(elem.Size())}}
	}
	return []field{f}
}

// inline says whether v is in the encoding at its place. values are three of
// growing size, or the default and two others of one size: each step then
// adds as much as the one before. A tagged field costs its tag on top when it
// first leaves its default, and a field that this version has not adds nothing.
func (p *prober) inline(v reflect.Value, values [3]reflect.Value) bool {
	a, b, c := p.encoding(v, values[0]), p.encoding(v, values[1]), p.encoding(v, values[2])
	return !slices.Equal(b, c) && len(b)-len(a) == len(c)-len(b)
}

func grownValues(t reflect.Type, value func(n int) reflect.Value) (values [3]reflect.Value) {
	for n := range values {
		values[n] = value(n)
	}
	return values
}

// fixedValues are the value that v has, and two others (or another and itself).
func fixedValues(v reflect.Value) (values [3]reflect.Value) {
	for i := range values {
		w := reflect.New(v.Type()).Elem()
		switch v.Kind() {
		case reflect.Bool:
			w.SetBool(v.Bool() != (i == 1))
		case reflect.Uint16, reflect.Uint32:
			w.SetUint(v.Uint() + uint64(i))
		case reflect.Float64:
			w.SetFloat(v.Float() + float64(i))
		case reflect.Array:
			w.Set(v)
			w.Index(0).SetUint(v.Index(0).Uint() + uint64(i))
		default:
			w.SetInt(v.Int() + int64(i))
		}
		values[i] = w
	}
	return values
}
