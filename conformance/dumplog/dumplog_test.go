package dumplog

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/lines"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const (
	topic      = "dump"
	partitions = 2
	rounds     = 3      // each with every codec, once idempotent and once plain
	perRun     = 10_000 // lines of one producer
)

var codecs = map[string]kgo.CompressionCodec{
	"NONE": kgo.NoCompression(), "GZIP": kgo.GzipCompression(), "SNAPPY": kgo.SnappyCompression(), "LZ4": kgo.Lz4Compression(), "ZSTD": kgo.ZstdCompression(),
}

// ST-5: kafka-dump-log reads every segment of a run with all codecs, deep, and its index checks pass, without complaint.
func TestDumpLog(t *testing.T) {
	target.Need(t, "java", "mvn")
	broker := target.Start(t, target.Options{
		Flags:      []string{"--segment-bytes", "1048576"},
		Properties: map[string]string{"log.segment.bytes": "1048576"},
	})
	dir := broker.DataDir()
	produced := produce(t, broker.Addr())
	broker.Stop()

	logs := files(t, dir, ".log")
	if len(logs) < 3*partitions {
		t.Fatalf("%d segments, which is too few to mean much: %v", len(logs), logs)
	}
	deep := dump(t, DeepIteration, logs)
	if deep.Counted != produced || deep.Records != produced {
		t.Errorf("produced %d records; the batches count %d, deep iteration found %d", produced, deep.Counted, deep.Records)
	}
	for codec := range codecs {
		if deep.Batches[strings.ToLower(codec)] == 0 {
			t.Errorf("no batch with codec %s: %v", codec, deep.Batches)
		}
	}
	indexes := slices.Concat(files(t, dir, ".index"), files(t, dir, ".timeindex"))
	if len(indexes) != 2*len(logs) {
		t.Errorf("%d segments have %d index files: %v", len(logs), len(indexes), indexes)
	}
	if sane := dump(t, SanityCheck, indexes); sane.Sane != len(indexes) {
		t.Errorf("%d of %d index files passed the sanity check", sane.Sane, len(indexes))
	}
	dump(t, VerifyIndex, indexes)
	t.Logf("%s: %d segments, %d index files, %d records, batches %v", broker.Name(), len(logs), len(indexes), deep.Records, deep.Batches)
	t.Run("the checks can fail", func(t *testing.T) { corrupt(t, filepath.Dir(logs[0])) })
}

// dump fails the test for any complaint.
func dump(t *testing.T, mode Mode, files []string) Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	report, err := Dump(ctx, mode, files)
	if err != nil {
		t.Fatal(err)
	}
	if report.Files != len(files) {
		t.Errorf("%v: %d files of %d were dumped", mode, report.Files, len(files))
	}
	if len(report.Trouble) > 0 {
		t.Errorf("%v: the tool complains (%d lines):\n%s", mode, len(report.Trouble), strings.Join(report.Trouble[:min(12, len(report.Trouble))], "\n"))
	}
	return report
}

// produce writes lines with every codec, idempotent and plain, mixed in the same partitions, and returns how many.
func produce(t *testing.T, addr string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	admin, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := kadm.NewClient(admin).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	text := lines.Slice(perRun)
	total := 0
	for range rounds {
		for _, codec := range codecs {
			for _, opts := range [][]kgo.Opt{nil, {kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}} {
				total += produceRun(ctx, t, text, append(opts, kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec))...)
			}
		}
	}
	return total
}

// produceRun sends text in batches of many sizes, with timestamps that do not always rise, as those of several producers do.
func produceRun(ctx context.Context, t *testing.T, text [][]byte, opts ...kgo.Opt) int {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < len(text); {
		to := min(len(text), from+1+r.IntN(1500))
		records := make([]*kgo.Record, 0, to-from)
		for i, line := range text[from:to] {
			at := time.Now().Add(-time.Duration(r.IntN(3)) * time.Millisecond)
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: line, Timestamp: at})
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	return len(text)
}

// files lists those of the topic's partitions with the given suffix, in order.
func files(t *testing.T, dir, suffix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == suffix && strings.HasPrefix(filepath.Base(filepath.Dir(path)), topic+"-") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// corrupt damages copies of a partition's first segment, one way at a time, and wants every damage to be found.
func corrupt(t *testing.T, partition string) {
	const base = "00000000000000000000"
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 0x40; return b }
	}
	cases := []struct {
		name, suffix string
		mode         Mode
		damage       func([]byte) []byte
	}{
		{"a record bit", ".log", DeepIteration, flip(200)},
		{"a cut batch", ".log", DeepIteration, func(b []byte) []byte { return b[:len(b)-7] }},
		{"half an index entry", ".index", SanityCheck, func(b []byte) []byte { return b[:len(b)-3] }},
		{"an index offset", ".index", VerifyIndex, flip(3)},
		{"half a time index entry", ".timeindex", SanityCheck, func(b []byte) []byte { return b[:len(b)-5] }},
		{"a time index timestamp", ".timeindex", VerifyIndex, flip(7)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, suffix := range []string{".log", ".index", ".timeindex"} {
				b, err := os.ReadFile(filepath.Join(partition, base+suffix))
				if err != nil {
					t.Fatal(err)
				}
				if suffix == c.suffix {
					b = c.damage(b)
				}
				if err := os.WriteFile(filepath.Join(dir, base+suffix), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			report, err := Dump(t.Context(), c.mode, []string{filepath.Join(dir, base+c.suffix)})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Trouble) == 0 {
				t.Errorf("not found: %+v", report)
			} else {
				t.Logf("%.160s", strings.Join(report.Trouble[:min(2, len(report.Trouble))], ": "))
			}
		})
	}
}
