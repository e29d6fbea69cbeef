package server

import (
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

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
