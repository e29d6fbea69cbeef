package cleaner

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A kit is the storage of a broker on a disk in memory, and its cleaner.
type kit struct {
	testing.TB
	fs       vfs.FS
	dir      string
	meta     string
	settings *config.Settings
	clock    *clock.Offset
	log      bytes.Buffer
	commits  atomic.Int64

	store    *metastore.Store
	topics   *topic.Registry
	cleaner  *Cleaner
	stopping context.CancelFunc
	done     chan struct{}
}

func newKit(t testing.TB) *kit {
	k := &kit{TB: t, fs: crashfs.New(), dir: "data", meta: filepath.Join(t.TempDir(), "meta.db"), settings: config.Default(), clock: clock.NewOffset(clock.System)}
	k.must(k.fs.Mkdir(k.dir, 0o755))
	return k
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// start opens the storage, and runs the cleaner.
func (k *kit) start() *kit {
	k.Helper()
	var err error
	logger := slog.New(slog.NewTextHandler(&k.log, nil))
	k.store, err = metastore.Open(metastore.Options{Path: k.meta, Logger: logger, Fail: func() error { k.commits.Add(1); return nil }})
	k.must(err)
	shared := &commitlog.Shared{FS: k.fs, Clock: k.clock, Logger: logger, Files: segment.NewFiles(64), AcksAllSync: true, Stats: new(commitlog.Stats)}
	k.topics, err = topic.Open(context.Background(), topic.Options{
		Shared: shared, Store: k.store, DataDir: k.dir, Settings: k.settings, Clean: func(kafka.TopicPartition) bool { return true },
	})
	k.must(err)
	k.cleaner = New(Options{Registry: k.topics, Clock: k.clock, Logger: logger, MaxKeys: k.settings.CleanerMaxKeys})
	ctx, cancel := context.WithCancel(context.Background())
	k.stopping, k.done = cancel, make(chan struct{})
	k.Cleanup(cancel) // also of a test that fails
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{k.cleaner.Run, k.cleaner.RunCompaction} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				k.Error(err)
			}
		})
	}
	go func() {
		running.Wait()
		close(k.done)
	}()
	return k
}

func (k *kit) stop() {
	k.Helper()
	k.stopping()
	<-k.done
	k.must(k.topics.Close())
	k.must(k.store.Close())
}

// create makes a topic whose segments take one record of fill.
func (k *kit) create(name string, partitions int32, configs ...string) *topic.Topic {
	k.Helper()
	spec := topic.Spec{Name: name, Partitions: partitions, ReplicationFactor: 1}
	configs = append(configs, "internal.segment.bytes", "100")
	for i := 0; i < len(configs); i += 2 {
		spec.Configs = append(spec.Configs, topic.ConfigEntry{Name: configs[i], Value: &configs[i+1]})
	}
	made := k.topics.Create(context.Background(), []topic.Spec{spec}, false)[0]
	k.must(made.Err)
	return made.Topic
}

// alter sets a config of a topic, or removes it if the value is "".
func (k *kit) alter(name, key, value string) {
	k.Helper()
	op := topic.ConfigOp{Op: topic.OpSet, Name: key, Value: value}
	if value == "" {
		op.Op = topic.OpDelete
	}
	k.must(k.topics.AlterConfigs(context.Background(), []topic.ConfigChange{{Topic: name, Ops: []topic.ConfigOp{op}}}, false)[0])
}

// recordSize is how many bytes each record of fill, and so each segment, has.
const recordSize = 76

// fill appends so many records to a partition, each a segment and a second after the one before.
func (k *kit) fill(t *topic.Topic, partition int32, n int, first time.Time) {
	k.Helper()
	l, err := t.Log(partition)
	k.must(err)
	for i := range n {
		b := record.NewBuilder(record.Options{})
		k.must(b.Append(first.Add(time.Duration(i)*time.Second).UnixMilli(), nil, fmt.Appendf(nil, "value %02d", i%100)))
		batch, err := b.Batch()
		k.must(err)
		if len(batch) != recordSize {
			k.Fatalf("a batch has %d bytes", len(batch))
		}
		a, err := l.Append(batch)
		k.must(err)
		if i == n-1 {
			k.must(l.AwaitFlushed(context.Background(), a.End))
		}
	}
}

// wantStart wants a partition that is open to begin at an offset, and its segments to be those from there on.
func (k *kit) wantStart(what, name string, partition int32, want int64) {
	k.Helper()
	t, _ := k.topics.Lookup(name)
	l, ok := t.Opened(partition)
	if !ok {
		k.Fatalf("%s: the log is not open", what)
	}
	at := l.Offsets()
	if at.LogStart != want {
		k.Errorf("%s: the log starts at %d, not at %d", what, at.LogStart, want)
	}
	if n := k.segments(name, partition); int64(n) != max(1, at.End-want) {
		k.Errorf("%s: %d segments from %d to %d", what, n, want, at.End)
	}
}

func (k *kit) segments(name string, partition int32) (n int) {
	k.Helper()
	entries, err := k.fs.ReadDir(filepath.Join(k.dir, fmt.Sprintf("%s-%d", name, partition)))
	k.must(err)
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".log" {
			n++
		}
	}
	return n
}

// pass lets time go by, and the sweeps that fall into it finish.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
