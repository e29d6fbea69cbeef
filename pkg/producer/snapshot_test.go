package producer

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
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
	for _, also := range []uint32{0, 0xfeedface} {
		at := Binding{Offset: 17, After: true, CRC: 0xdeadbeef, Also: also}
		got, bound, err := Decode(s.Encode(nil, at))
		if err != nil || bound != at {
			t.Fatal(bound, err)
		}
		want, have := &partition{state: *s}, &partition{state: *got}
		if want.describe() != have.describe() {
			t.Errorf("state:\n%s\nwant:\n%s", have.describe(), want.describe())
		}
	}
}

// versionOne is someState as the version before compaction wrote it.
const versionOne = "445a505300019e04e085000000000000001101deadbeef0000000300000000000000040001ffffffff000000000000006affffffffffffffff05" +
	"0000000500000001000000000000000500000000000000660000000700000001000000000000000700000000000000670000000900000001000000000000000900000000000000" +
	"680000000b00000001000000000000000b00000000000000690000000d00000001000000000000000d000000000000006a" +
	"000000000000000500000000000300000000000000c8ffffffffffffffff010000000000000000000000000000000f0000000000000064" +
	"00000000000000090000ffffffff0000000000000064000000000000000e010000000000000000000000000000000e0000000000000064"

// ST-9: a snapshot of the version before compaction is read, and written so as long as nothing was rewritten: that version reads it, too.
func TestASnapshotOfVersionOneIsReadAndWritten(t *testing.T) {
	old, err := hex.DecodeString(versionOne)
	if err != nil {
		t.Fatal(err)
	}
	s, at, err := Decode(old)
	if err != nil || at != (Binding{Offset: 17, After: true, CRC: 0xdeadbeef}) {
		t.Fatal(at, err)
	}
	want, have := &partition{state: *someState(t)}, &partition{state: *s}
	if want.describe() != have.describe() {
		t.Errorf("state:\n%s\nwant:\n%s", have.describe(), want.describe())
	}
	if now := someState(t).Encode(nil, at); !bytes.Equal(now, old) {
		t.Errorf("%x", now)
	}
}

// ST-9, ST-48: a snapshot fits the batch that it was taken after, and the one that compaction puts there; no other.
func TestWhatASnapshotFits(t *testing.T) {
	for _, c := range []struct {
		at   Binding
		crc  uint32
		fits bool
	}{
		{Binding{Offset: 9, After: true, CRC: 5}, 5, true},
		{Binding{Offset: 9, After: true, CRC: 5}, 6, false},
		{Binding{Offset: 9, After: true, CRC: 5}, 0, false},
		{Binding{Offset: 9, After: true, CRC: 0}, 0, true},
		{Binding{Offset: 9, After: true, CRC: 5, Also: 6}, 5, true},
		{Binding{Offset: 9, After: true, CRC: 5, Also: 6}, 6, true},
		{Binding{Offset: 9, After: true, CRC: 5, Also: 6}, 7, false},
		{Binding{}, 0, false},
	} {
		if c.at.Fits(c.crc) != c.fits {
			t.Errorf("%+v and %d: %v", c.at, c.crc, !c.fits)
		}
	}
}

// A snapshot of version 2 that names no other batch, or is of no batch at all, is refused.
func TestAVersionTwoWithoutARewrittenBatchIsRefused(t *testing.T) {
	whole := someState(t).Encode(nil, Binding{Offset: 17, After: true, CRC: 1, Also: 2})
	for what, change := range map[string]func([]byte) []byte{
		"no other batch": func(b []byte) []byte { binary.BigEndian.PutUint32(b[23:], 0); return b },
		"no batch":       func(b []byte) []byte { b[18] = 0; binary.BigEndian.PutUint32(b[19:], 0); return b },
		"cut short":      func(b []byte) []byte { return b[:snapshotHeader] },
	} {
		if _, at, err := Decode(resealed(change(bytes.Clone(whole)))); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %+v, %v", what, at, err)
		}
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
	for _, also := range []uint32{0, 2} {
		whole := someState(t).Encode(nil, Binding{Offset: 17, After: true, CRC: 1, Also: also})
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
}

// Whatever decodes encodes to the same bytes, and nothing panics or takes
// memory by a count that the bytes do not hold.
func FuzzDecode(f *testing.F) {
	f.Add(someState(f).Encode(nil, Binding{Offset: 17, After: true, CRC: 1}))
	f.Add(new(State).Encode(nil, Binding{}))
	f.Add(someState(f).Encode(nil, Binding{Offset: 17, After: true, CRC: 1, Also: 2}))
	f.Add(new(State).Encode(nil, Binding{Offset: 1, After: true, Also: 1<<32 - 1}))
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
