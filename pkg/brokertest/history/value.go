package history

import (
	"bytes"
	"fmt"
	"strconv"
)

// A name says which record it is, and where it was sent.
type name struct {
	topic    string
	born     int
	part     int32
	producer uint32
	n        uint32
}

func (b Batch) name(i int) name {
	return name{b.Topic, b.Born, b.Partition, b.Producer, b.First + uint32(i)}
}

func (n name) String() string {
	return fmt.Sprintf("record %d of producer %d for %s-%d (topic %d of the name)", n.n, n.producer, n.topic, n.part, n.born)
}

// Value is that of record i of the batch: its name, and bytes that follow from it, up to 200. A value read back is compared with all of it.
func (b Batch) Value(i int) []byte { return b.name(i).value() }

// Values are those of the whole batch.
func (b Batch) Values() (values [][]byte) {
	for i := range int(b.N) {
		values = append(values, b.Value(i))
	}
	return values
}

func (n name) value() []byte {
	out := make([]byte, 0, 64)
	out = append(append(out, n.topic...), ' ')
	for _, v := range []uint64{uint64(n.born), uint64(n.part), uint64(n.producer), uint64(n.n)} {
		out = append(strconv.AppendUint(out, v, 10), ' ')
	}
	seed := n.n*2654435761 + n.producer*40503 + uint32(n.part)
	for range seed >> 8 % 150 {
		seed = seed*1664525 + 1013904223
		out = append(out, 'a'+byte(seed>>24)%26)
	}
	return out
}

// parse is the name in a value; ok is false for bytes that no batch has had.
func parse(value []byte) (n name, ok bool) {
	words := bytes.SplitN(value, []byte(" "), 6)
	if len(words) != 6 {
		return n, false
	}
	var v [4]uint64
	for i := range v {
		var err error
		if v[i], err = strconv.ParseUint(string(words[i+1]), 10, 32); err != nil {
			return n, false
		}
	}
	n = name{string(words[0]), int(v[0]), int32(v[1]), uint32(v[2]), uint32(v[3])}
	return n, bytes.Equal(n.value(), value)
}
