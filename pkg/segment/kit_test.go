package segment

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A disk is a crashfs with a directory for one partition, which is durable.
const dir = "data/demo-0"

func newDisk(t testing.TB) *crashfs.FS {
	t.Helper()
	d := crashfs.New()
	if err := vfs.MkdirAll(d, dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// options are for a disk; what is logged goes to the buffer that is returned.
func options(d vfs.FS) (*Options, *bytes.Buffer) {
	var log bytes.Buffer
	return &Options{
		FS: d, Dir: dir, Files: NewFiles(4),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, &log
}

// osOptions are for a directory of the operating system.
func osOptions(t testing.TB) *Options {
	return &Options{FS: vfs.OS, Dir: t.TempDir(), Files: NewFiles(4)}
}

// batch makes a batch of n offsets from base on, size bytes long, whose
// content is noise.
func batch(base int64, n int32, size int, ts int64) record.Batch {
	b := make(record.Batch, size)
	r := rand.New(rand.NewPCG(uint64(base), uint64(size)))
	for i := 0; i < size; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[i:], word[:])
	}
	b.SetBaseOffset(base)
	put32(b[8:], uint32(size-record.LengthEnd))
	b.SetLeaderEpoch(0)
	b[16] = record.Magic
	b.SetAttributes(0)
	put32(b[23:], uint32(n-1))
	b.SetMaxTimestamp(ts)
	b.SetCRC()
	return b
}

func put32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// A model is what a segment should hold.
type model struct {
	batches []record.Batch
	pos     []int64
	size    int64
	data    []byte
}

func (m *model) add(b record.Batch) {
	m.batches = append(m.batches, b)
	m.pos = append(m.pos, m.size)
	m.size += int64(len(b))
	m.data = append(m.data, b...)
}

func (m *model) next(base int64) int64 {
	if len(m.batches) == 0 {
		return base
	}
	return m.batches[len(m.batches)-1].LastOffset() + 1
}

// find is the index of the first batch that ends at or after offset.
func (m *model) find(offset int64) int {
	for i, b := range m.batches {
		if b.LastOffset() >= offset {
			return i
		}
	}
	return len(m.batches)
}

func (m *model) position(i int) int64 {
	if i == len(m.batches) {
		return m.size
	}
	return m.pos[i]
}

func (m *model) bytes() []byte { return bytes.Clone(m.data) }

// firstAt is the index of the first batch with a max timestamp of at least ts.
func (m *model) firstAt(ts int64) int {
	for i, b := range m.batches {
		if b.MaxTimestamp() >= ts {
			return i
		}
	}
	return len(m.batches)
}

func (m *model) largest(base int64) (ts, offset int64) {
	ts, offset = record.NoTimestamp, base
	for _, b := range m.batches {
		if b.MaxTimestamp() > ts {
			ts, offset = b.MaxTimestamp(), b.LastOffset()
		}
	}
	return ts, offset
}

// check compares everything that can be asked of a segment with the model.
func (m *model) check(t testing.TB, s *Segment) {
	t.Helper()
	if s.Size() != m.size {
		t.Fatalf("size %d, want %d", s.Size(), m.size)
	}
	for o := s.Base() - 2; o <= m.next(s.Base())+2; o++ {
		m.checkOffset(t, s, o)
	}
	if ts, o := s.LargestTimestamp(); true {
		wantTs, wantO := m.largest(s.Base())
		if ts != wantTs || o != wantO {
			t.Fatalf("largest timestamp %d at %d, want %d at %d", ts, o, wantTs, wantO)
		}
	}
	first := record.NoTimestamp
	if len(m.batches) > 0 {
		first = m.batches[0].MaxTimestamp()
	}
	if ts := s.FirstTimestamp(); ts != first {
		t.Fatalf("first timestamp %d, want %d", ts, first)
	}
	m.checkTimes(t, s)
	m.checkWalk(t, s)
}

func (m *model) checkOffset(t testing.TB, s *Segment, o int64) {
	t.Helper()
	want := m.position(m.find(o))
	if pos, err := s.Position(o); err != nil || pos != want {
		t.Fatalf("offset %d is at %d, %v; want %d", o, pos, err, want)
	}
}

func (m *model) checkTimes(t testing.TB, s *Segment) {
	t.Helper()
	for _, b := range m.batches {
		for _, ts := range []int64{b.MaxTimestamp() - 1, b.MaxTimestamp(), b.MaxTimestamp() + 1} {
			want := m.position(m.firstAt(ts))
			pos, err := s.TimePosition(ts)
			if err != nil || pos > want || m.firstAt(ts) == len(m.batches) && pos != m.size {
				t.Fatalf("timestamp %d is at or after %d, %v; want at most %d", ts, pos, err, want)
			}
		}
	}
}

func (m *model) checkWalk(t testing.TB, s *Segment) {
	t.Helper()
	i := 0
	err := s.Batches(0, func(pos int64, h record.Batch) bool {
		if i == len(m.batches) || pos != m.pos[i] || !bytes.Equal(h, m.batches[i][:record.HeaderSize]) {
			t.Fatalf("walk: header %d at %d is not the one that was written", i, pos)
		}
		i++
		return true
	})
	if err != nil || i != len(m.batches) {
		t.Fatalf("walk: %d batches, %v; want %d", i, err, len(m.batches))
	}
}

// read returns the bytes of a region and lets it go.
func read(t testing.TB, r Region) []byte {
	t.Helper()
	if r.Length == 0 {
		if r.Release != nil {
			t.Fatal("an empty region wants to be released")
		}
		return nil
	}
	b := make([]byte, r.Length)
	if _, err := r.File.ReadAt(b, r.Offset); err != nil {
		t.Fatal(err)
	}
	r.Release()
	return b
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, o *Options, base int64) *Segment {
	t.Helper()
	return must[*Segment](t)(Create(o, base))
}

// fill appends n batches of about size bytes with ascending timestamps.
func fill(t testing.TB, s *Segment, m *model, n, size int) {
	t.Helper()
	for i := range n {
		b := batch(m.next(s.Base()), int32(1+i%3), size+i%7, 1_000+int64(len(m.batches)))
		ok(t, s.Append(b, 4096))
		m.add(b)
	}
}

// sealed makes a sealed segment of n batches of about size bytes, closed.
func sealed(t testing.TB, o *Options, base int64, n, size int) *model {
	t.Helper()
	m := &model{}
	s := create(t, o, base)
	fill(t, s, m, n, size)
	ok(t, s.Seal())
	ok(t, o.FS.SyncDir(o.Dir))
	ok(t, s.Close())
	return m
}

func content(t testing.TB, o *Options, base int64, suffix string) []byte {
	t.Helper()
	return must[[]byte](t)(vfs.ReadFile(o.FS, o.path(base, suffix)))
}

func overwrite(t testing.TB, o *Options, base int64, suffix string, data []byte) {
	t.Helper()
	f := must[vfs.File](t)(o.FS.OpenFile(o.path(base, suffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, fs.FileMode(0o644)))
	must[int](t)(f.WriteAt(data, 0))
	ok(t, f.Close())
}

func names(t testing.TB, o *Options) []string {
	t.Helper()
	var out []string
	for _, e := range must[[]fs.DirEntry](t)(o.FS.ReadDir(o.Dir)) {
		out = append(out, filepath.Base(e.Name()))
	}
	return out
}
