package producer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

func someState(t testing.TB) *State {
	t.Helper()
	p := &partition{}
	for i := range int32(7) {
		p.append(data(t, 4, 1, i*2, 2, 100+int64(i), false), Unverified)
	}
	p.append(data(t, 9, 0, 0, 1, 100, true), VerifiedInTxn)
	p.append(data(t, 5, 0, 0, 1, 100, true), VerifiedInTxn)
	p.take(marker(t, 5, 0, record.Abort, 3, 200))
	return &p.state
}

// ST-9: nothing of the state is lost in a snapshot.
func TestSnapshotKeepsTheWholeState(t *testing.T) {
	s := someState(t)
	at := Binding{Offset: 17, After: true, CRC: 0xdeadbeef}
	got, bound, err := Decode(s.Encode(nil, at))
	if err != nil || bound != at {
		t.Fatal(bound, err)
	}
	want, have := &partition{state: *s}, &partition{state: *got}
	if want.describe() != have.describe() {
		t.Errorf("state:\n%s\nwant:\n%s", have.describe(), want.describe())
	}
}

func TestSnapshotOfNoProducers(t *testing.T) {
	got, at, err := Decode(new(State).Encode(nil, Binding{}))
	if err != nil || at != (Binding{}) || got.Len() != 0 {
		t.Error(got, at, err)
	}
}

// ST-9: a snapshot that is torn or rotten in any byte is refused.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	whole := someState(t).Encode(nil, Binding{Offset: 17, After: true, CRC: 1})
	for n := range whole {
		if _, _, err := Decode(whole[:n]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		bad := bytes.Clone(whole)
		bad[n] ^= 0x10
		if _, _, err := Decode(bad); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
	}
	if _, _, err := Decode(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrSnapshot) {
		t.Error("a byte more:", err)
	}
}

// Whatever decodes encodes to the same bytes, and nothing panics or takes
// memory by a count that the bytes do not hold.
func FuzzDecode(f *testing.F) {
	f.Add(someState(f).Encode(nil, Binding{Offset: 17, After: true, CRC: 1}))
	f.Add(new(State).Encode(nil, Binding{}))
	f.Fuzz(func(t *testing.T, buf []byte) {
		s, at, err := Decode(buf)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			if len(buf) < snapshotHeader {
				return
			}
			// Past the checksum is where the parsing is: make it right.
			if s, at, err = Decode(resealed(buf)); err != nil {
				return
			}
			buf = resealed(buf)
		}
		if again := s.Encode(nil, at); !bytes.Equal(again, buf) {
			t.Fatalf("%x encodes as %x", buf, again)
		}
	})
}

func BenchmarkCheckAndUpdate(b *testing.B) {
	var s State
	batch := data(b, 1, 0, 0, 1, 0, false)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Check(batch, Unverified); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Update(batch); err != nil {
			b.Fatal(err)
		}
		batch.SetBaseOffset(batch.LastOffset() + 1)
		setSequence(batch, record.AddSequence(batch.LastSequence(), 1))
	}
}
