package commitlog

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// large appends one batch of records of 1 MiB each, which compress well, whose keys are key 0, key 1 and so on.
func large(t *testing.T, l *Log, codec record.Codec, records int) {
	t.Helper()
	value := make([]byte, 1<<20)
	b := record.NewBuilder(record.Options{Codec: codec})
	for i := range records {
		if err := b.Append(1000, fmt.Append(nil, "key ", i), value); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(batch); err != nil {
		t.Fatal(err)
	}
}

// ST-47, PF-12: a batch that inflates beyond 256 MiB stays as it is and is told of; one of less is built anew. Neither costs the
// memory of what it inflates to.
func TestLargeBatchesInLittleMemory(t *testing.T) {
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		for _, records := range []int{60, 257} {
			if codec != record.Zstd && short() {
				continue
			}
			t.Run(fmt.Sprint(codec, " of ", records, " MiB"), func(t *testing.T) {
				o := osDisk(t, testOptions(nil, 1))
				cfg := *o.Config
				cfg.SegmentBytes, cfg.MaxMessageBytes = 1<<30, 100<<20
				var told strings.Builder
				o.Config, o.Logger = &cfg, slog.New(slog.NewTextHandler(&told, nil))
				l := mustOpen(t, o)
				defer mustClose(t, l)
				large(t, l, codec, records)
				large(t, l, record.Zstd, 1)
				if err := l.Roll(); err != nil {
					t.Fatal(err)
				}
				before := contents(t, l)
				var start, end runtime.MemStats
				runtime.ReadMemStats(&start)
				got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(1000)})
				runtime.ReadMemStats(&end)
				if err != nil {
					t.Fatal(err)
				}
				if mb := (end.TotalAlloc - start.TotalAlloc) >> 20; mb > 80 && !raceDetector {
					t.Errorf("%d MiB were allocated", mb)
				} else {
					t.Logf("%d MiB were allocated for a batch of %d KiB", mb, len(before[0])>>10)
				}
				after := contents(t, l)
				if records > 256 {
					if got.Rewritten != 0 || !slices.Equal(after[0], before[0]) || strings.Count(told.String(), "inflates to more than") != 1 {
						t.Error(got, told.String())
					}
					return
				}
				if got.Removed != 1 || after[0].Count() != int32(records)-1 || after[0].Codec() != codec || len(after[0]) > len(before[0]) {
					t.Error(got, after[0].Count(), after[0].Codec(), len(after[0]))
				}
			})
		}
	}
}
