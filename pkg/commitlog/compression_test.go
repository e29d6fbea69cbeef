package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// words are values in which a compressor that tries harder finds more.
func words(t *testing.T) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.Options{})
	now := time.Now().UnixMilli()
	for i := range int64(300) {
		value := fmt.Appendf(nil, "%x the quick brown fox %d jumps over %d lazy dogs %x", i*i*7919, i%17, i%5, i*2654435761)
		if err := b.Append(now-i%3, []byte("key"), value); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// ST-13: the level of the topic is the one that is used: what is stored is what
// that level makes, and differs between levels, with either timestamp type.
func TestCompressionLevelOfTheTopic(t *testing.T) {
	for codec, levels := range map[record.Codec][]int{record.Gzip: {1, 9}, record.LZ4: {9, 17}, record.Zstd: {1, 19}} {
		for _, appendTime := range []bool{false, true} {
			var stored []record.Batch
			for _, level := range levels {
				o := testOptions(crashfs.New(), 1)
				o.Config.Compression = Compression{Codec: codec, Level: level}
				o.Config.LogAppendTime = appendTime
				l := openNew(t, o)
				sent := words(t)
				a, err := l.Append(bytes.Clone(sent))
				if err != nil {
					t.Fatal(err)
				}
				b := contents(t, l)[0]
				if err := b.CheckCRC(); err != nil || b.Codec() != codec || b.Count() != sent.Count() || b.LogAppendTime() != appendTime {
					t.Errorf("%s level %d: %v, %s, %d records, log append time %v", codec, level, err, b.Codec(), b.Count(), b.LogAppendTime())
				}
				if want := sent.MaxTimestamp(); !appendTime && b.MaxTimestamp() != want || appendTime && b.MaxTimestamp() != a.LogAppendTime {
					t.Errorf("%s level %d: max timestamp %d, sent %d, append time %d", codec, level, b.MaxTimestamp(), want, a.LogAppendTime)
				}
				direct, err := record.Rebuild(sent, codec, level)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(direct[record.HeaderSize:], b[record.HeaderSize:]) {
					t.Errorf("%s level %d: stored are %d bytes, the level makes %d", codec, level, len(b), len(direct))
				}
				stored = append(stored, b)
			}
			if bytes.Equal(stored[0][record.HeaderSize:], stored[1][record.HeaderSize:]) || len(stored[0]) <= len(stored[1]) {
				t.Errorf("%s: level %d stores %d bytes, level %d stores %d", codec, levels[0], len(stored[0]), levels[1], len(stored[1]))
			}
		}
	}
}

// ST-13: max.message.bytes and segment.bytes bound what is stored, also where the
// producer's codec made less of it, and a refused batch leaves nothing.
func TestLimitsHoldAfterRecompression(t *testing.T) {
	sent, err := record.Rebuild(words(t), record.Zstd, 19)
	if err != nil {
		t.Fatal(err)
	}
	plain := len(words(t))
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"max.message.bytes":          {func(c *Config) { c.MaxMessageBytes = plain - 1 }, kerr.MessageTooLarge},
		"segment.bytes":              {func(c *Config) { c.SegmentBytes = int64(plain) - 1 }, kerr.RecordListTooLarge},
		"max.message.bytes, just so": {func(c *Config) { c.MaxMessageBytes = plain }, nil},
	} {
		o := testOptions(crashfs.New(), 1)
		o.Config.Compression = Compression{Codec: record.None}
		c.change(o.Config)
		l := openNew(t, o)
		if _, err := l.Append(bytes.Clone(sent)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.want != nil && (l.Offsets().End != 0 || l.Size() != 0) {
			t.Errorf("%s: %+v, %d bytes", name, l.Offsets(), l.Size())
		}
	}
}
