package fetchsession

import (
	"slices"
	"testing"
	"unsafe"
)

// unsafeString is a string that aliases b, as kmsg makes them.
func unsafeString(b []byte) string { return unsafe.String(&b[0], len(b)) }

// A list does what a slice does, whatever is done to it: below and above the
// size from which it has an index.
func FuzzList(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0x40, 0x81, 0x42})
	many := make([]byte, 120)
	for i := range many {
		many[i] = byte(i * 7)
	}
	f.Add(many)
	f.Fuzz(func(t *testing.T, ops []byte) {
		var l list
		var model []Partition
		for offset, op := range ops {
			p := Partition{Name: Name{Topic: "t", Partition: int32(op & 0x3f)}, FetchOffset: int64(offset)}
			at := slices.IndexFunc(model, func(q Partition) bool { return q.Name == p.Name })
			switch op >> 6 {
			case 0, 1:
				l.set(&p)
				if at >= 0 {
					model[at] = p
				} else {
					model = append(model, p)
				}
			case 2:
				l.remove(p.Name)
				if at >= 0 {
					model = slices.Delete(model, at, at+1)
				}
			case 3:
				if n := l.find(p.Name); (n != nil) != (at >= 0) {
					t.Fatalf("find of %v: %v", p.Name, n)
				} else if n != nil {
					l.moveToEnd(n)
					moved := model[at]
					model = append(slices.Delete(model, at, at+1), moved)
				}
			}
			var got []Partition
			for n := l.first; n != nil; n = n.next {
				got = append(got, n.Partition)
			}
			if !slices.Equal(got, model) || l.size != len(model) {
				t.Fatalf("got %v, want %v", got, model)
			}
		}
	})
}
