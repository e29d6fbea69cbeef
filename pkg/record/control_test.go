package record

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bytes of a marker are those that kmsg, and so every client, reads.
func TestMarkerIsWhatClientsRead(t *testing.T) {
	for _, m := range []Marker{{Type: Commit, CoordinatorEpoch: 7}, {Type: Abort, CoordinatorEpoch: 0}} {
		b, err := NewMarker(m, 42, 3, now)
		if err != nil {
			t.Fatal(err)
		}
		if b.Attributes() != 0x30 || b.ProducerID() != 42 || b.ProducerEpoch() != 3 || b.BaseSequence() != NoSequence || b.Count() != 1 || b.MaxTimestamp() != now {
			t.Errorf("attributes %x", b.Attributes())
		}
		if got, err := b.Marker(); err != nil || got != m {
			t.Errorf("%v, %v; want %v", got, err, m)
		}
		for r, err := range b.Records() {
			if err != nil {
				t.Fatal(err)
			}
			var key kmsg.ControlRecordKey
			var value kmsg.EndTxnMarker
			if err := errors.Join(key.ReadFrom(r.Key), value.ReadFrom(r.Value)); err != nil {
				t.Fatal(err)
			}
			if int16(key.Type) != int16(m.Type) || value.CoordinatorEpoch != m.CoordinatorEpoch || !bytes.Equal(key.AppendTo(nil), r.Key) || !bytes.Equal(value.AppendTo(nil), r.Value) {
				t.Errorf("kmsg reads %v and %v", key, value)
			}
		}
	}
}

func TestWhatIsNoMarkerIsRefused(t *testing.T) {
	control := func(key, value []byte) Batch {
		b := NewBuilder(Options{Control: true})
		if err := b.Append(now, key, value); err != nil {
			t.Fatal(err)
		}
		batch, err := b.Batch()
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	value := []byte{0, 0, 0, 0, 0, 1}
	for name, b := range map[string]Batch{
		"data":          sample(t, Options{}, 1),
		"key":           control([]byte{0, 0, 0}, value),
		"null":          control(nil, nil),
		"key version":   control([]byte{0x80, 0, 0, 1}, value),
		"type":          control([]byte{0, 0, 0, 2}, value),
		"value":         control([]byte{0, 0, 0, 1}, value[:5]),
		"value version": control([]byte{0, 0, 0, 1}, []byte{0xff, 0xff, 0, 0, 0, 1}),
	} {
		if _, err := b.Marker(); !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Later versions only add fields.
	if m, err := control([]byte{0, 1, 0, 1, 9}, append([]byte{0, 1, 0, 0, 0, 5}, 9)).Marker(); err != nil || m != (Marker{Type: Commit, CoordinatorEpoch: 5}) {
		t.Errorf("version 1: %v, %v", m, err)
	}
}
