package commitlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// superseding is a log of segments of one record each, of these keys, and an active one with a record of the key end.
func superseding(t testing.TB, keys ...string) *Log {
	t.Helper()
	l := aged(t, func(*Config) {})
	for i, key := range keys {
		putAt(t, l, 1000, key, fmt.Sprint("v", i))
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	putAt(t, l, 1000, "end", "v")
	return l
}

// offsets of the records that are in the log.
func offsets(t testing.TB, l *Log) (all []int64) {
	t.Helper()
	at := l.Offsets()
	for offset := at.LogStart; offset < at.HighWatermark; {
		got := readAt(t, l, offset, 1<<20)
		if len(got) == 0 {
			break
		}
		for _, b := range got {
			for _, r := range recordsOf(t, b) {
				if r.offset >= at.LogStart {
					all = append(all, r.offset)
				}
			}
			offset = b.LastOffset() + 1
		}
	}
	return all
}

// ST-35, ST-40, ST-44: records may be deleted at any moment of a pass. What begins the log by then keeps nothing that is
// superseded either: no later pass would find it, and once the tombstone over it is gone it would be back.
func TestRecordsAreDeletedDuringAPass(t *testing.T) {
	keys := []string{"a", "b", "a", "c", "a", "b", "a"}
	latest := []int64{3, 5, 6, 7}
	for at := range 20 {
		for start := int64(1); start <= int64(len(keys)); start++ {
			l := superseding(t, keys...)
			calls := 0
			got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(100), NowMs: 5000, Pace: func(context.Context, int) error {
				if calls++; calls == at+1 {
					return l.MoveStart(start)
				}
				return nil
			}})
			if err != nil || got.Next != int64(len(keys)) || got.More {
				t.Fatalf("start %d at call %d: %+v, %v", start, at, got, err)
			}
			if calls <= at {
				continue // the pass was over before
			}
			want := slices.DeleteFunc(slices.Clone(latest), func(o int64) bool { return o < start })
			if have := offsets(t, l); !slices.Equal(have, want) || l.Offsets().LogStart != start {
				t.Fatalf("start %d at call %d of %d: the log has %v from %d on, want %v", start, at, calls, have, l.Offsets().LogStart, want)
			}
			mustClose(t, l)
			o := l.o
			again := mustOpen(t, o)
			if have := offsets(t, again); !slices.Equal(slices.DeleteFunc(have, func(o int64) bool { return o < start }), want) {
				t.Fatalf("start %d at call %d, opened again: %v, want %v", start, at, have, want)
			}
			mustClose(t, again)
		}
	}
}

// A pass ends with its log, and says what became of that, not that it was interrupted; with its caller; and where
// compact is taken out of cleanup.policy (LogManager.updateTopicConfig aborts it, too).
func TestAPassEndsAtOnce(t *testing.T) {
	for _, c := range []struct {
		what string
		end  func(l *Log, stop context.CancelFunc)
		want error
	}{
		{"closed", func(l *Log, _ context.CancelFunc) { _ = l.Close() }, kerr.KafkaStorageError},
		{"deleted", func(l *Log, _ context.CancelFunc) { l.Abandon() }, kerr.UnknownTopicOrPartition},
		{"stopped", func(_ *Log, stop context.CancelFunc) { stop() }, context.Canceled},
		{"not compacted any more", func(l *Log, _ context.CancelFunc) {
			cfg := *l.config.Load()
			cfg.Compact, cfg.Delete = false, true
			l.SetConfig(&cfg)
		}, ErrNoCompaction},
	} {
		for at := 1; ; at++ {
			l := superseding(t, "a", "b", "a", "a")
			ctx, stop := context.WithCancel(t.Context())
			var ending sync.WaitGroup
			calls := 0
			got, err := l.Compact(ctx, Compaction{Keys: NewKeyMap(100), NowMs: 5000, Pace: func(ctx context.Context, _ int) error {
				if calls++; calls != at {
					return nil
				}
				if errors.Is(c.want, ErrNoCompaction) {
					c.end(l, stop)
					return nil
				}
				ending.Go(func() { c.end(l, stop) })
				<-ctx.Done() // as a pace that is slow
				return ctx.Err()
			}})
			ending.Wait()
			stop()
			if calls < at || calls == at && err == nil { // nothing comes after the last call
				break
			}
			if !errors.Is(err, c.want) || got.Next != 0 || calls != at ||
				!errors.Is(c.want, kerr.KafkaStorageError) && errors.Is(err, kerr.KafkaStorageError) {
				t.Fatalf("%s at call %d: %+v, %v after %d calls", c.what, at, got, err, calls)
			}
			if l.compacting != nil {
				t.Fatal(c.what, "a compaction is still under way")
			}
		}
	}
}

// Of two passes at once the second is refused, and may be tried again.
func TestASecondPassIsRefused(t *testing.T) {
	l := superseding(t, "a", "a")
	first := true
	got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(100), Pace: func(ctx context.Context, _ int) error {
		if first {
			first = false
			if _, err := l.Compact(ctx, Compaction{Keys: NewKeyMap(100)}); !errors.Is(err, ErrCompacting) {
				t.Error(err)
			}
		}
		return nil
	}})
	if err != nil || got.Rewritten != 1 {
		t.Fatal(got, err)
	}
	if got, err := l.Compact(t.Context(), Compaction{From: got.Next, Keys: NewKeyMap(100)}); err != nil || got.Rewritten != 0 || got.Next != 2 {
		t.Error(got, err)
	}
}

// ST-40, ST-47: rolls, another codec and other limits in the middle of a pass change nothing of what stays.
func TestConfigsChangeDuringAPass(t *testing.T) {
	l := superseding(t, "a", "b", "a", "c", "b", "a")
	calls := 0
	got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(100), NowMs: 5000, Pace: func(context.Context, int) error {
		calls++
		cfg := *l.config.Load()
		cfg.SegmentBytes, cfg.Compression = 100+int64(calls), Compression{Codec: record.Codec(calls % 5)}
		cfg.DeleteRetentionMs, cfg.MinCompactionLagMs = int64(calls), int64(calls)*10_000
		l.SetConfig(&cfg)
		putAt(t, l, 1000, "a", "later")
		return l.Roll()
	}})
	if err != nil || got.Next != 6 || got.More {
		t.Fatal(got, err)
	}
	have := offsets(t, l)
	if want := []int64{3, 4, 5, 6}; !slices.Equal(have[:4], want) || len(have) != 4+calls {
		t.Errorf("%v after %d calls", have, calls)
	}
}
