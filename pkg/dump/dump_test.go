package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/transcript"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// Files and what is printed of them: testdata/*.txt.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T, script string) string {
		d := newDirectory(t)
		var out strings.Builder
		for line := range strings.Lines(script) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "->") {
				continue
			}
			out.WriteString(line + "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			for answer := range strings.Lines(d.run(t, line)) {
				out.WriteString(strings.TrimRight("-> "+strings.TrimRight(answer, "\n"), " ") + "\n")
			}
		}
		return out.String()
	})
}

const (
	noon = 1767268800000 // 2026-01-01T12:00:00Z
	base = 1000          // of the segment
)

// A directory of a partition with one segment.
type directory struct {
	fs    *crashfs.FS
	next  int64
	state producer.State
}

func newDirectory(t testing.TB) *directory {
	t.Helper()
	d := &directory{fs: crashfs.New(), next: base}
	ok(t, d.fs.Mkdir("demo-0", 0o755))
	return d
}

func name(suffix string) string { return "demo-0/" + segment.FileName(base, suffix) }

// run does one command: a word, then words and key=value arguments.
func (d *directory) run(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	a := arguments{word: map[string]bool{}, value: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.value[k] = v
		} else {
			a.word[w] = true
		}
	}
	switch words[0] {
	case "batch":
		d.append(t, name(segment.LogSuffix), d.batch(t, a))
	case "marker":
		b, err := record.NewMarker(record.Marker{Type: record.Abort, CoordinatorEpoch: int32(a.num("coordinator", 3))}, a.num("producer", 7), int16(a.num("epoch", 0)), noon+d.next)
		ok(t, err)
		d.append(t, name(segment.LogSuffix), d.place(t, b))
	case "entry": // entry .index 7 120: 4-byte numbers; the first of a .timeindex and those of a .txnindex have 8
		d.append(t, name(words[1]), entry(t, words[1], words[2:]))
	case "snapshot":
		d.append(t, name(snapshotSuffix), d.state.Encode(nil, producer.Binding{Offset: d.next + a.num("off", 0), After: true, CRC: 0xabcdef01}))
	case "bytes": // bytes .log ff00
		b, err := hexBytes(words[2])
		ok(t, err)
		d.append(t, name(words[1]), b)
	case "flip": // flip .log 90
		b := d.content(t, name(words[1]))
		b[number(t, words[2])] ^= 0x40
		d.write(t, name(words[1]), b)
	case "set": // set .log 22 6
		b := d.content(t, name(words[1]))
		b[number(t, words[2])] = byte(number(t, words[3]))
		d.write(t, name(words[1]), b)
	case "cut": // cut .log 5
		b := d.content(t, name(words[1]))
		d.write(t, name(words[1]), b[:len(b)-int(number(t, words[2]))])
	case "remove":
		ok(t, d.fs.Remove(name(words[1])))
	case "dump": // dump .log records bytes=3
		return d.dump(words[1], Options{Records: a.word["records"], FieldBytes: int(a.num("bytes", DefaultFieldBytes))})
	case "dumpfile":
		return d.dumpFile(words[1], Options{})
	default:
		t.Fatalf("unknown command %q", line)
	}
	return ""
}

func (d *directory) dump(suffix string, o Options) string { return d.dumpFile(name(suffix), o) }

func (d *directory) dumpFile(name string, o Options) string {
	var out bytes.Buffer
	faults, err := File(&out, d.fs, name, o)
	if err != nil {
		fmt.Fprintln(&out, "error:", err)
	}
	fmt.Fprintln(&out, "faults:", faults)
	return out.String()
}

type arguments struct {
	word  map[string]bool
	value map[string]string
}

func (a arguments) num(key string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(a.value[key], 10, 64); err == nil {
		return n
	}
	return otherwise
}

var codecs = map[string]record.Codec{"": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd}

// batch makes a batch of n records at the next offset: codec, producer, epoch,
// seq, horizon, size of each value, and the words txn, appendtime, headers, binary, null.
func (d *directory) batch(t *testing.T, a arguments) record.Batch {
	t.Helper()
	o := record.Options{
		Codec: codecs[a.value["codec"]], LeaderEpoch: int32(a.num("leader", 2)), Transactional: a.word["txn"],
		LogAppendTime: a.word["appendtime"], AppendTime: noon + 999_000, DeleteHorizon: a.num("horizon", 0),
	}
	if _, ok := a.value["producer"]; ok {
		o.Producer = &record.Producer{ID: a.num("producer", 0), Epoch: int16(a.num("epoch", 0)), BaseSequence: int32(a.num("seq", 0))}
	}
	builder := record.NewBuilder(o)
	for i := range a.num("n", 1) {
		key, value := []byte("k"+fmt.Sprint(i)), bytes.Repeat([]byte("v"), int(a.num("size", 5)))
		var headers []record.Header
		switch {
		case a.word["null"]:
			key, value = nil, nil
		case a.word["binary"]:
			key, value = []byte("\x1b[2J\x00"), []byte("größe\xff")
		case a.word["headers"]:
			headers = []record.Header{{Key: "trace", Value: []byte("abc")}, {Key: "none"}}
		}
		ok(t, builder.Append(noon+d.next+i, key, value, headers...))
	}
	b, err := builder.Batch()
	ok(t, err)
	return d.place(t, b)
}

// place puts a batch at the next offset.
func (d *directory) place(t *testing.T, b record.Batch) record.Batch {
	t.Helper()
	b.SetBaseOffset(d.next)
	d.next = b.LastOffset() + 1
	_, err := d.state.Update(b)
	ok(t, err)
	return b
}

func entry(t *testing.T, suffix string, words []string) (b []byte) {
	t.Helper()
	for i, w := range words {
		n := number(t, w)
		switch {
		case suffix == segment.TxnIndexSuffix && i == 0:
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		case suffix == segment.TxnIndexSuffix, suffix == segment.TimeIndexSuffix && i == 0:
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		default:
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}

func hexBytes(s string) (b []byte, err error) {
	if s, times, ok := strings.Cut(s, "*"); ok {
		n, err := strconv.Atoi(times)
		one, err2 := hexBytes(s)
		return bytes.Repeat(one, n), errors.Join(err, err2)
	}
	_, err = fmt.Sscanf(s, "%x", &b)
	return b, err
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	ok(t, err)
	return n
}

func (d *directory) append(t testing.TB, file string, b []byte) {
	t.Helper()
	d.write(t, file, append(d.content(t, file), b...))
}

func (d *directory) content(t testing.TB, file string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(d.fs, file)
	if !errors.Is(err, fs.ErrNotExist) {
		ok(t, err)
	}
	return b
}

func (d *directory) write(t testing.TB, file string, b []byte) {
	t.Helper()
	f, err := d.fs.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	ok(t, err)
	_, err = f.WriteAt(b, 0)
	ok(t, err)
	ok(t, f.Close())
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing is written, created, locked or synced.
func TestNothingIsChanged(t *testing.T) {
	d := newDirectory(t)
	d.run(t, "batch n=3 codec=gzip")
	d.run(t, "entry .index 2 0")
	disk := faultfs.New(d.fs)
	for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix} {
		if _, err := File(io.Discard, disk, name(suffix), Options{Records: true}); err != nil {
			t.Error(err)
		}
	}
	if n := disk.Count(vfs.OpChanges | vfs.OpLock | vfs.OpAllocate); n != 0 || disk.Count(vfs.OpRead) == 0 {
		t.Errorf("%d operations that are no reads", n)
	}
}

// A broker that is writing finishes the batch that the dump has seen the beginning of.
func TestABatchThatGrowsIsRead(t *testing.T) {
	d := newDirectory(t)
	d.run(t, "batch n=2")
	whole := d.content(t, name(segment.LogSuffix))
	d.write(t, name(segment.LogSuffix), whole[:len(whole)-9])
	src, err := open(d.fs, name(segment.LogSuffix))
	ok(t, err)
	defer src.close()
	d.write(t, name(segment.LogSuffix), append(whole, "the next"...))
	var out bytes.Buffer
	p := &printer{w: bufio.NewWriter(&out), fs: d.fs}
	ok(t, p.log(src, base))
	ok(t, p.w.Flush())
	if p.faults != 0 || !strings.Contains(out.String(), "1 batch, 2 records, offsets 1000 to 1001, no fault") {
		t.Errorf("%d faults:\n%s", p.faults, &out)
	}
}

// However large the file or what is in it, little is held: a batch that inflates to 256 MiB, in a file of many.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads 256 MiB")
	}
	dir := t.TempDir()
	b := record.NewBuilder(record.Options{Codec: record.Zstd})
	value := make([]byte, 1<<20)
	for range 256 {
		ok(t, b.Append(noon, nil, value))
	}
	batch, err := b.Batch()
	ok(t, err)
	giant := record.NewBuilder(record.Options{Codec: record.Zstd, BaseOffset: 256})
	ok(t, giant.Append(noon, nil, make([]byte, mostRecord+1)))
	one, err := giant.Batch()
	ok(t, err)
	file := filepath.Join(dir, segment.FileName(0, segment.LogSuffix))
	ok(t, os.WriteFile(file, append(batch, one...), 0o600))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	end := &lastWrite{}
	faults, err := File(end, vfs.OS, file, Options{Records: true, FieldBytes: 10})
	ok(t, err)
	runtime.ReadMemStats(&after)
	if faults != 1 || !strings.Contains(end.last, "a record of") {
		t.Errorf("%d faults, %q", faults, end.last)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 64<<20 {
		t.Errorf("%d MiB allocated in all", total>>20)
	}
}

// lastWrite keeps what came last.
type lastWrite struct{ last string }

func (p *lastWrite) Write(b []byte) (int, error) {
	p.last = string(b)
	return len(b), nil
}

// An error of the disk, or of who is written to, is the answer.
func TestErrorsComeBack(t *testing.T) {
	d := newDirectory(t)
	d.run(t, "batch n=2")
	if _, err := File(failingWriter{}, d.fs, name(segment.LogSuffix), Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error("a writer that fails:", err)
	}
	disk := faultfs.New(d.fs)
	disk.Fail(faultfs.Rule{Kinds: vfs.OpRead, Err: fs.ErrPermission})
	if _, err := File(io.Discard, disk, name(segment.LogSuffix), Options{}); !errors.Is(err, fs.ErrPermission) {
		t.Error("a disk that fails:", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A year that has no four digits is told in milliseconds.
func TestTimes(t *testing.T) {
	for ms, want := range map[int64]string{
		-1: "-", 0: "1970-01-01T00:00:00.000Z", noon: "2026-01-01T12:00:00.000Z",
		mostYear: "9999-12-31T23:59:59.999Z", mostYear + 1: "253402300800000 ms",
		leastYear: "0000-01-01T00:00:00.000Z", math.MinInt64: "-9223372036854775808 ms",
	} {
		if got := at(ms); got != want {
			t.Errorf("%d: %q, want %q", ms, got, want)
		}
	}
}

// FuzzFile: no bytes make a dump panic, hang or fail, under whatever suffix, and all of them are accounted for.
func FuzzFile(f *testing.F) {
	d := newDirectory(f)
	t := &testing.T{}
	for _, line := range []string{"batch n=3 codec=gzip", "batch n=1 headers producer=4", "marker", "batch size=2000 codec=zstd", "snapshot"} {
		d.run(t, line)
	}
	log := d.content(f, name(segment.LogSuffix))
	f.Add(uint8(0), log)
	f.Add(uint8(0), log[7:])
	f.Add(uint8(0), log[:len(log)-3])
	f.Add(uint8(1), entry(t, segment.IndexSuffix, []string{"2", "90"}))
	f.Add(uint8(2), entry(t, segment.TimeIndexSuffix, []string{fmt.Sprint(noon), "2"}))
	f.Add(uint8(3), entry(t, segment.TxnIndexSuffix, []string{"0", "7", "1000", "1004", "1000"}))
	f.Add(uint8(4), d.content(f, name(snapshotSuffix)))
	suffixes := []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix, snapshotSuffix}
	f.Fuzz(func(t *testing.T, kind uint8, content []byte) {
		d := newDirectory(t)
		d.write(t, name(segment.LogSuffix), log)
		file := name(suffixes[int(kind)%len(suffixes)])
		d.write(t, file, content)
		var out bytes.Buffer
		faults, err := File(&out, d.fs, file, Options{Records: true, FieldBytes: 10})
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Count(out.String(), "\n! "); told != faults {
			t.Errorf("%d faults, and %d are told", faults, told)
		}
		if !strings.HasPrefix(out.String(), fmt.Sprintf("%s: %d bytes\n", file, len(content))) {
			t.Errorf("begins with %.80q", out.String())
		}
	})
}
