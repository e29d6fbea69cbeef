package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A model is what a log should be: a slice of batches, and a map of producers.
type model struct {
	batches []record.Batch
	next    map[int64]int32 // producer to its next sequence
	last    map[int64]int   // producer to the index of its last batch
	end     int64
}

// ST-5, ST-9, ST-53, TX-1: random appends, repeats, gaps, reads, flushes, clean stops and
// kills leave the log as a slice and a map beside it say.
func TestLogAgreesWithAModel(t *testing.T) {
	seeds, steps := uint64(20), 300
	if short() {
		seeds = 5
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		disk, epoch := crashfs.New(), int32(0)
		m := &model{next: map[int64]int32{}, last: map[int64]int{}}
		var l *Log
		reopen := func(clean bool) {
			epoch++
			o := testOptions(disk, epoch)
			o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Clean = 3000, 256, clean
			l = mustOpen(t, o)
		}
		reopen(false)
		for step := range steps {
			what := fmt.Sprintf("seed %d step %d", seed, step)
			switch op := rng.IntN(20); {
			case op < 9:
				m.append(t, l, rng, what)
			case op < 11:
				m.repeat(t, l, rng, what)
			case op < 12:
				id := 1 + rng.Int64N(3)
				b := batch(t, spec{id: id, sequence: m.next[id] + 5, timestamp: 1000})
				if _, err := l.Append(b); m.next[id] > 0 && !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
					t.Fatal(what, err)
				} else if err == nil {
					m.add(b, id)
				}
			case op < 17:
				m.read(t, l, rng, what)
			case op < 18:
				mustFlush(t, l)
			case op < 19:
				mustClose(t, l)
				reopen(true)
			default:
				l.Abandon()
				reopen(false)
			}
			if at := l.Offsets(); at.End != m.end || at.HighWatermark != m.end || at.LastStable != m.end {
				t.Fatal(what, at, m.end)
			}
		}
		l.Abandon()
	}
}

func (m *model) append(t *testing.T, l *Log, rng *rand.Rand, what string) {
	s := spec{n: 1 + rng.IntN(5), size: rng.IntN(300), timestamp: 1000 + rng.Int64N(1000), codec: record.Codec(rng.IntN(5))}
	if rng.IntN(3) > 0 {
		s.id = 1 + rng.Int64N(3)
		s.sequence = m.next[s.id]
	}
	b := batch(t, s)
	a, err := l.Append(b)
	if err != nil || a.BaseOffset != m.end || a.Duplicate {
		t.Fatal(what, a, err)
	}
	m.add(b, s.id)
}

func (m *model) add(b record.Batch, id int64) {
	m.end = b.LastOffset() + 1
	m.batches = append(m.batches, bytes.Clone(b))
	if id > 0 {
		m.next[id] = record.AddSequence(b.LastSequence(), 1)
		m.last[id] = len(m.batches) - 1
	}
}

func (m *model) repeat(t *testing.T, l *Log, rng *rand.Rand, what string) {
	i, ok := m.last[1+rng.Int64N(3)]
	if !ok {
		return
	}
	b := record.Batch(bytes.Clone(m.batches[i]))
	b.SetBaseOffset(0)
	a, err := l.Append(b)
	if err != nil || !a.Duplicate || a.BaseOffset != m.batches[i].BaseOffset() {
		t.Fatal(what, a, err)
	}
}

func (m *model) read(t *testing.T, l *Log, rng *rand.Rand, what string) {
	offset := rng.Int64N(m.end + 1)
	s, err := l.Read(offset, rng.IntN(4000), true, kafka.Isolation(rng.IntN(2)))
	if err != nil || offset < m.end && s.Region.Length == 0 {
		t.Fatal(what, s, err)
	}
	i := 0
	for i < len(m.batches) && m.batches[i].LastOffset() < offset {
		i++
	}
	for _, got := range batches(t, s.Region) {
		if !bytes.Equal(got, m.batches[i]) {
			t.Fatalf("%s: read at %d:\n%x, want\n%x", what, offset, got, m.batches[i])
		}
		i++
	}
}

// Appenders, readers, watchers and lookups beside one another: every reader
// sees whole batches in their order up to the mark it was given (run with -race).
func TestConcurrentUse(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.SegmentBytes = 20_000
	o.FsyncInterval = 1
	l := mustOpen(t, o)
	const appenders, each = 4, 150
	var writers, readers sync.WaitGroup
	for w := range appenders {
		writers.Go(func() {
			for i := range int32(each) {
				a := mustAppend(t, l, spec{n: 2, size: 100, id: int64(w + 1), sequence: 2 * i})
				if i%10 == 0 {
					if err := l.AwaitFlushed(t.Context(), a.End); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 3 {
		readers.Go(func() {
			wake := make(chan struct{}, 1)
			defer l.Watch(wake)()
			for offset := int64(0); offset < 2*appenders*each; {
				s, err := l.Read(offset, 5000, true, kafka.ReadUncommitted)
				if err != nil {
					t.Error(err)
					return
				}
				if s.Region.Length == 0 {
					if offset < s.HighWatermark {
						t.Error("nothing at", offset, s)
						return
					}
					<-wake
					continue
				}
				for _, b := range batches(t, s.Region) {
					if b.BaseOffset() != offset || b.CheckCRC() != nil || b.LastOffset() >= s.HighWatermark {
						t.Error("read", b.BaseOffset(), "at", offset, s.Offsets)
						return
					}
					offset = b.LastOffset() + 1
				}
				if _, err := l.OffsetForMaxTimestamp(kafka.ReadCommitted); err != nil {
					t.Error(err)
				}
				if bytes, _ := l.Available(0, kafka.ReadCommitted); bytes <= 0 {
					t.Error(bytes)
				}
				if at := l.Offsets(); at.Flushed > at.End || at.LastStable > at.End {
					t.Error(at)
				}
			}
		})
	}
	writers.Wait()
	if t.Failed() {
		l.Abandon() // the readers would wait for ever for what a writer has not written
	}
	readers.Wait()
	mustClose(t, l)
}
