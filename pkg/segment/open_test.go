package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// damages are the ways in which an index can be wrong that are seen at open.
var damages = map[string]func(b []byte, size int) []byte{
	"missing":            func([]byte, int) []byte { return nil },
	"empty":              func(b []byte, _ int) []byte { return b[:0] },
	"cut in an entry":    func(b []byte, _ int) []byte { return b[:len(b)-3] },
	"half":               func(b []byte, _ int) []byte { return b[:len(b)/48*24] },
	"one entry":          func(b []byte, _ int) []byte { return b[:24] },
	"all zeros":          func(b []byte, _ int) []byte { return make([]byte, len(b)) },
	"last half zeros":    func(b []byte, _ int) []byte { clear(b[len(b)/2:]); return b },
	"last entry zero":    func(b []byte, _ int) []byte { clear(b[len(b)-8:]); return b },
	"all ones":           func(b []byte, _ int) []byte { return bytes.Repeat([]byte{0xff}, len(b)) },
	"last byte changed":  func(b []byte, _ int) []byte { b[len(b)-1]++; return b },
	"last entry twice":   func(b []byte, size int) []byte { return append(b, b[len(b)-size:]...) },
	"first key negative": func(b []byte, _ int) []byte { b[0] |= 0x80; return b },
	"entries behind end": func(b []byte, _ int) []byte { return append(b, bytes.Repeat([]byte{0x7f}, 24)...) },
	"of another segment": func(b []byte, _ int) []byte {
		for i := range len(b) / 4 {
			binary.BigEndian.PutUint32(b[i*4:], binary.BigEndian.Uint32(b[i*4:])+1)
		}
		return b
	},
}

// ST-8: an index that is missing, truncated or does not match its log is
// rebuilt, byte for byte, and that is logged once.
func TestWrongIndexIsRebuiltAtOpen(t *testing.T) {
	for suffix, size := range map[string]int{IndexSuffix: offsetEntry, TimeIndexSuffix: timeEntry} {
		for what, damage := range damages {
			t.Run(suffix[1:]+" "+what, func(t *testing.T) {
				o, log := options(newDisk(t))
				m := sealed(t, o, 50, 200, 700)
				good := content(t, o, 50, suffix)
				if bad := damage(bytes.Clone(good), size); bad == nil {
					ok(t, o.FS.Remove(o.path(50, suffix)))
				} else {
					overwrite(t, o, 50, suffix, bad)
				}
				s := must[*Segment](t)(Open(o, 50))
				m.check(t, s)
				if n := strings.Count(log.String(), "rebuilt"); n != 1 {
					t.Errorf("logged %d times: %s", n, log)
				}
				if !bytes.Equal(content(t, o, 50, suffix), good) {
					t.Error("it is not what it was")
				}
				ok(t, s.Close())

				log.Reset()
				s = must[*Segment](t)(Open(o, 50))
				if log.Len() > 0 {
					t.Errorf("the next open logs: %s", log)
				}
				ok(t, s.Close())
			})
		}
	}
}

// ST-8: damage in the middle, which open does not look for, is met by a lookup; the answer is right all the same.
func TestDamageInTheMiddleIsMetByALookup(t *testing.T) {
	damages := map[string]func(b []byte, size int){
		"zeros": func(b []byte, _ int) { clear(b) },
		"ones": func(b []byte, _ int) {
			for i := range b {
				b[i] = 0xff
			}
		},
		"negative values": func(b []byte, size int) {
			for i := size - 4; i < len(b); i += size {
				b[i] |= 0x80
			}
		},
		"values beyond the log": func(b []byte, size int) {
			for i := size - 4; i < len(b); i += size {
				b[i] |= 0x40
			}
		},
		"noise": func(b []byte, _ int) {
			for i := range b {
				b[i] = byte(i * i * 31)
			}
		},
	}
	for suffix, size := range map[string]int{IndexSuffix: offsetEntry, TimeIndexSuffix: timeEntry} {
		for what, damage := range damages {
			t.Run(suffix[1:]+" "+what, func(t *testing.T) {
				o, log := options(newDisk(t))
				m := sealed(t, o, 50, 800, 700)
				good := content(t, o, 50, suffix)
				bad := bytes.Clone(good)
				damage(bad[240:len(bad)-240], size)
				overwrite(t, o, 50, suffix, bad)
				s := must[*Segment](t)(Open(o, 50))
				if log.Len() > 0 && suffix == IndexSuffix && what == "zeros" { // the check of the times may meet noise
					t.Fatalf("seen at open: %s", log)
				}
				for _, i := range []int{0, 200, 400, 600, 799} {
					m.checkOffset(t, s, m.batches[i].BaseOffset())
				}
				m.checkTimes(t, s)
				if n := strings.Count(log.String(), "rebuilt"); n != 1 {
					t.Errorf("logged %d times: %s", n, log)
				}
				if !bytes.Equal(content(t, o, 50, suffix), good) {
					t.Error("it is not what it was")
				}
				ok(t, s.Close())
			})
		}
	}
}

// ST-8, ST-21: what opening a sealed segment reads does not grow with it.
func TestOpenReadsLittle(t *testing.T) {
	for _, n := range []int{0, 1, 5, 300, 30_000} {
		disk := faultfs.New(newDisk(t))
		o, log := options(disk)
		m := sealed(t, o, 0, n, 200)
		reads, bytesRead := 0, int64(0)
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRead {
				reads++
				bytesRead += op.Length
			}
		})
		s := must[*Segment](t)(Open(o, 0))
		if reads > 20 || bytesRead > 32<<10 {
			t.Errorf("%d batches: %d reads of %d bytes", n, reads, bytesRead)
		}
		if log.Len() > 0 {
			t.Errorf("%d batches: %s", n, log)
		}
		ts, _ := s.LargestTimestamp()
		if want, _ := m.largest(0); ts != want {
			t.Errorf("%d batches: largest timestamp %d, want %d", n, ts, want)
		}
		ok(t, s.Close())
	}
}

// An index whose interval is not the one that is configured now is no wrong index.
func TestIndexOfAnotherIntervalIsAccepted(t *testing.T) {
	for _, interval := range []int{0, 1_000, 100_000} {
		o, log := options(newDisk(t))
		s, m := create(t, o, 0), &model{}
		for i := range int64(1_000) {
			b := batch(i, 1, 600, i)
			ok(t, s.Append(b, interval))
			m.add(b)
		}
		ok(t, s.Seal())
		ok(t, s.Close())
		s = must[*Segment](t)(Open(o, 0))
		m.check(t, s)
		if log.Len() > 0 {
			t.Errorf("interval %d: %s", interval, log)
		}
		ok(t, s.Close())
	}
}

// ST-14: a log that can't be walked to its end opens, and its good indexes are kept.
func TestRottenLogOpens(t *testing.T) {
	for _, bad := range []int{0, 1, 100, 198, 199} {
		o, log := options(newDisk(t))
		m := sealed(t, o, 0, 200, 700)
		data := m.bytes()
		data[m.pos[bad]+16] = 1 // the magic
		overwrite(t, o, 0, LogSuffix, data)
		s := must[*Segment](t)(Open(o, 0))
		for _, i := range []int{0, 50, 150} {
			if pos, err := s.Position(m.batches[i].BaseOffset()); err == nil && pos != m.pos[i] || err != nil && i < bad {
				t.Errorf("bad %d: batch %d at %d, %v", bad, i, pos, err)
			}
		}
		if _, err := s.TimePosition(m.batches[150].MaxTimestamp()); err != nil && bad > 150 {
			t.Error(err)
		}
		if (bad > 190) != strings.Contains(log.String(), "can't be read") {
			t.Errorf("bad %d: logged %s", bad, log)
		}
		ok(t, s.Close())
	}
}

// ST-60: a full disk keeps nobody from reading, rebuilt indexes or not.
func TestOpenOnAFullDiskServesFromMemory(t *testing.T) {
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := sealed(t, o, 0, 600, 700)
		ok(t, disk.Remove(o.path(0, suffix)))
		disk.SetFull(true)
		s := must[*Segment](t)(Open(o, 0))
		m.checkOffset(t, s, m.next(0)/2)
		m.checkTimes(t, s)
		ok(t, s.Close())
	}
}

func TestOpenReportsAFailingDisk(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	if _, err := Open(o, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	sealed(t, o, 0, 100, 700)
	before := openFiles(disk)
	disk.Fail(faultfs.Rule{Kinds: vfs.OpRead, Name: "*.log", Times: -1})
	if _, err := Open(o, 0); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if n := openFiles(disk); n != before {
		t.Fatalf("%d files left open", n-before)
	}
}

// ST-8: whatever the index files hold, every answer is the log's.
func FuzzIndex(f *testing.F) {
	o, _ := options(newDisk(f))
	m := sealed(f, o, 50, 60, 700)
	offsets, times := content(f, o, 50, IndexSuffix), content(f, o, 50, TimeIndexSuffix)
	f.Add(offsets, times)
	for _, damage := range damages {
		f.Add(damage(bytes.Clone(offsets), offsetEntry), times)
		f.Add(offsets, damage(bytes.Clone(times), timeEntry))
	}
	f.Fuzz(func(t *testing.T, offsets, times []byte) {
		o, _ := options(newDisk(t))
		overwrite(t, o, 50, LogSuffix, m.bytes())
		overwrite(t, o, 50, IndexSuffix, offsets)
		overwrite(t, o, 50, TimeIndexSuffix, times)
		s := must[*Segment](t)(Open(o, 50))
		m.check(t, s)
		ok(t, s.Close())
		s, _, err := Recover(o, 50, true, 50, nil)
		ok(t, err)
		m.check(t, s)
		ok(t, s.Close())
	})
}
