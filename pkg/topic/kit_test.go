package topic

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A kit is a data directory on some disk with a meta.db on the real one.
type kit struct {
	testing.TB
	fs       vfs.FS
	dir      string
	meta     string
	settings *config.Settings
	clean    func(kafka.TopicPartition) bool
	fail     func() error // of the store's commits
	logged   *logged

	store *metastore.Store
	*Registry
}

// logged is what was logged, for tests that want a warning.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.b.Bytes(), []byte(text))
}

// onDisk is a kit on the operating system's disk; onCrashDisk on one in memory.
func onDisk(t testing.TB) *kit {
	dir := t.TempDir()
	return &kit{TB: t, fs: vfs.OS, dir: dir, meta: filepath.Join(dir, "meta.db"), settings: config.Default(), logged: new(logged)}
}

func onCrashDisk(t testing.TB, disk *crashfs.FS) *kit {
	k := onDisk(t)
	if err := vfs.MkdirAll(disk, "data", 0o755); err != nil {
		t.Fatal(err)
	}
	k.fs, k.dir = disk, "data"
	return k
}

// start opens the store and the registry; stop is the caller's.
func (k *kit) start() *kit {
	k.Helper()
	if err := k.tryStart(); err != nil {
		k.Fatal(err)
	}
	return k
}

func (k *kit) tryStart() (err error) {
	logger := slog.New(slog.NewTextHandler(k.logged, nil))
	fail := func() error {
		if k.fail != nil {
			return k.fail()
		}
		return nil
	}
	if k.store, err = metastore.Open(metastore.Options{Path: k.meta, Logger: logger, Fail: fail}); err != nil {
		return err
	}
	k.Cleanup(func() { _ = k.store.Close() }) // most tests close it first
	shared := &commitlog.Shared{FS: k.fs, Clock: clock.System, Logger: logger, Files: segment.NewFiles(64), AcksAllSync: true,
		ProducerExpiration: config.ProducerIDExpiration, Stats: new(commitlog.Stats)}
	k.Registry, err = Open(context.Background(), Options{Shared: shared, Store: k.store, DataDir: k.dir, Settings: k.settings, Clean: k.clean})
	return err
}

// stop is a clean stop.
func (k *kit) stop() {
	k.Helper()
	if err := errors.Join(k.Close(), k.store.Close()); err != nil {
		k.Fatal(err)
	}
}

func (k *kit) create(specs ...Spec) []*Topic {
	k.Helper()
	var topics []*Topic
	for _, c := range k.Create(context.Background(), specs, false) {
		if c.Err != nil {
			k.Fatal(c.Err)
		}
		topics = append(topics, c.Topic)
	}
	return topics
}

func simple(name string) Spec { return Spec{Name: name, Partitions: 1, ReplicationFactor: 1} }

// produce appends one record and waits until it is durable.
func (k *kit) produce(t *Topic, partition int32, value string) error {
	l, err := t.Log(partition)
	if err != nil {
		return err
	}
	b := record.NewBuilder(record.Options{})
	if err := b.Append(time.Now().UnixMilli(), nil, []byte(value)); err != nil {
		return err
	}
	batch, err := b.Batch()
	if err != nil {
		return err
	}
	a, err := l.Append(batch)
	if err != nil {
		return err
	}
	return l.AwaitFlushed(context.Background(), a.End)
}

func (k *kit) mustProduce(t *Topic, partition int32, value string) {
	k.Helper()
	if err := k.produce(t, partition, value); err != nil {
		k.Fatal(err)
	}
}

// holds says whether a partition has exactly one record per value, in order.
func (k *kit) holds(t *Topic, partition int32, values ...string) error {
	l, err := t.Log(partition)
	if err != nil {
		return err
	}
	if end := l.Offsets().End; end != int64(len(values)) {
		return errors.New(t.Name() + ": wrong end offset")
	}
	for i, v := range values {
		s, err := l.Read(int64(i), 1<<20, true, kafka.ReadUncommitted)
		if err != nil {
			return err
		}
		b := make([]byte, s.Region.Length)
		_, err = s.Region.File.ReadAt(b, s.Region.Offset)
		s.Region.Release()
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(v)) {
			return errors.New(t.Name() + ": no record " + v)
		}
	}
	return nil
}

// cut is the kit after a power cut: what the disk keeps, and what meta.db had committed.
func (k *kit) cut(s crashfs.Survival) *kit {
	k.Helper()
	after := onDisk(k.TB)
	f, err := os.Create(after.meta)
	if err != nil {
		k.Fatal(err)
	}
	_, err = k.store.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		k.Fatal(err)
	}
	after.fs, after.dir = k.fs.(*crashfs.FS).CrashClone(s), k.dir
	return after
}
