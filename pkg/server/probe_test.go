package server

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// eachRequest calls f with every request and version that kmsg has.
func eachRequest(f func(req kmsg.Request)) {
	for key := range int16(kmsg.MaxKey + 1) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		for version := range req.MaxVersion() + 1 {
			req := kmsg.RequestForKey(key)
			req.SetVersion(version)
			f(req)
		}
	}
}

// fill sets v, part of a request, to random content.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" && v.Field(i).CanSet() {
				fill(r, v.Field(i), depth)
			} else if tags, ok := v.Field(i).Addr().Interface().(*kmsg.Tags); ok && r.IntN(4) == 0 {
				tags.Set(uint32(90+r.IntN(9)), make([]byte, r.IntN(200)))
			}
		}
	case reflect.Slice:
		n := r.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth)
		}
	case reflect.String:
		v.SetString("some text that is long enough"[:r.IntN(20)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(r.IntN(100)))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(100)))
	}
}

// The shapes found by probing are those of kmsg: whatever a request of any API
// and version holds, going over it ends exactly at its end.
func TestShapesFitEveryRequestThereIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	opaque := map[int16]bool{}
	checked := 0
	eachRequest(func(req kmsg.Request) {
		s := shapeFor(req.Key(), req.GetVersion())
		if s.opaque {
			opaque[req.Key()] = true
			return
		}
		for range 20 {
			v := reflect.ValueOf(req).Elem()
			version := req.GetVersion()
			fill(r, v, 0)
			req.SetVersion(version)
			b := req.AppendTo(nil)
			w := walker{b: b, flexible: s.flexible, room: maxDecodedBytes}
			w.fields(s.fields)
			if w.err != nil || len(w.b) != 0 {
				t.Fatalf("%s v%d: %v, %d of %d bytes left", kmsg.NameForKey(req.Key()), version, w.err, len(w.b), len(b))
			}
			checked++
		}
	})
	t.Logf("%d requests; opaque: %v", checked, opaque)
	for _, key := range []int16{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 22, 23, 24, 25, 26, 28, 32, 33, 44, 60, 68} {
		if opaque[key] {
			t.Errorf("%s has a shape that probing does not find", kmsg.NameForKey(key))
		}
	}
}
