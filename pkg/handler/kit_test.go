package handler

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/txn"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

const (
	testNode    = 7
	testEpoch   = 3
	testCluster = "AAECAwQFBgcICQoLDA0ODw"
)

// A kit is the storage of a broker on a disk in memory, with the Handler over it.
type kit struct {
	*Handler
	t     testing.TB
	disk  *faultfs.FS
	store *metastore.Store
	conn  *server.ConnInfo
	log   *bytes.Buffer

	metaDB  string
	dataDir string
	commits func() error // fails commits of meta.db; may be nil
	close   func()
}

// newKit makes a kit on an empty disk in memory.
func newKit(t testing.TB, change ...func(*config.Settings)) *kit {
	t.Helper()
	return newKitOn(t, crashfs.New(), nil, change...)
}

// newKitOn makes a kit on a disk, which is asked for a directory to live in if it is a real one.
func newKitOn(t testing.TB, base vfs.FS, commits func() error, change ...func(*config.Settings)) *kit {
	t.Helper()
	dir := t.TempDir()
	k := &kit{t: t, disk: faultfs.New(base), log: new(bytes.Buffer), metaDB: filepath.Join(dir, "meta.db"), dataDir: dir, commits: commits}
	if _, ok := base.(*crashfs.FS); ok {
		k.dataDir = "/data"
		check(t, k.disk.Mkdir(k.dataDir, 0o755))
	}
	settings := config.Default()
	settings.NodeID = testNode
	for _, c := range change {
		c(settings)
	}
	k.open(settings)
	t.Cleanup(func() { k.close() })
	return k
}

// open opens the storage and makes the Handler over it.
func (k *kit) open(settings *config.Settings) {
	k.t.Helper()
	logger := slog.New(slog.NewTextHandler(k.log, nil))
	var err error
	k.store, err = metastore.Open(metastore.Options{Path: k.metaDB, Fail: k.commits})
	check(k.t, err)
	registry, err := topic.Open(context.Background(), topic.Options{
		Shared: &commitlog.Shared{
			FS: k.disk, Clock: clock.System, Logger: logger, Files: segment.NewFiles(100), Epoch: testEpoch,
			FsyncInterval: 500 * time.Millisecond, AcksAllSync: settings.AcksAllSync,
			ProducerExpiration: 24 * time.Hour, Stats: new(commitlog.Stats),
		},
		Store: k.store, DataDir: k.dataDir, Settings: settings,
		Clean: func(kafka.TopicPartition) bool { return true },
	})
	check(k.t, err)
	groups, err := group.Open(group.Options{Store: k.store, FS: k.disk, Dir: k.dataDir, Epoch: testEpoch, Clock: clock.System, Logger: logger, Settings: settings, Topic: func(name string) (kafka.TopicImage, bool) {
		t, ok := registry.Lookup(name)
		if !ok {
			return kafka.TopicImage{}, false
		}
		return kafka.TopicImage{Name: name, ID: t.ID(), Partitions: t.Partitions()}, true
	}})
	check(k.t, err)
	txns, err := txn.Open(txn.Options{Store: k.store, Topics: registry, Groups: groups, Clock: clock.System, Logger: logger, Settings: settings, Epoch: testEpoch, Clean: true})
	check(k.t, err)
	self, err := endpoint.New(endpoint.Config{}, endpoint.Facts{})
	check(k.t, err)
	k.Handler = New(Deps{
		Registry: registry, Groups: groups, Settings: settings, Endpoint: self, Sessions: fetchsession.New(0, nil),
		Transactions: txns, Clock: clock.System, Logger: logger, ClusterID: testCluster, NodeID: testNode, Epoch: testEpoch,
	})
	k.conn = &server.ConnInfo{ID: 1, Listener: "PLAINTEXT", Local: tcp("127.0.0.1:9092"), Remote: tcp("127.0.0.1:50000")}
	k.close = func() {
		txns.Close()
		_ = groups.Close()   // a test may have broken the store
		_ = registry.Close() // a test may have broken the disk
		_ = k.store.Close()  // or its commits
	}
}

// restart closes the storage and opens it again: no log is open.
func (k *kit) restart() {
	k.t.Helper()
	k.close()
	k.open(k.Settings)
}

func tcp(s string) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", s)
	if err != nil {
		panic(err)
	}
	return a
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A call is a request under way.
type call struct {
	k     *kit
	frame []byte
	req   kmsg.Request
	reply server.Reply
	ctx   context.Context
}

// begin encodes a request as a client does, decodes it as the server does, and starts it.
func (k *kit) begin(version int16, req kmsg.Request) *call {
	k.t.Helper()
	req.SetVersion(version)
	c := &call{k: k, frame: req.AppendTo(nil), req: kmsg.RequestForKey(req.Key()), ctx: context.Background()}
	c.req.SetVersion(version)
	check(k.t, c.req.(kmsg.UnsafeReadFrom).UnsafeReadFrom(c.frame))
	if spec, ok := k.Lookup(req.Key()); !ok || version < spec.Min || version > spec.Max {
		k.t.Fatalf("%T v%d is not spoken", req, version)
	}
	c.reply = k.Handle(c.ctx, &server.Request{
		Conn: k.conn, Key: req.Key(), Version: version, ClientID: "test", Body: c.req,
	})
	return c
}

// finish waits for the answer, sends it and decodes it; nil if there is none.
func (c *call) finish() kmsg.Response {
	c.k.t.Helper()
	// What was kept of the frame after the reply would now be wrong.
	defer func() {
		for i := range c.frame {
			c.frame[i] = 0xff
		}
	}()
	if c.reply.Wait != nil {
		c.reply.Wait(c.ctx)
	}
	if c.reply.Response == nil {
		return nil
	}
	resp, err := c.reply.Response()
	check(c.k.t, err)
	var wire []byte
	if resp.Body != nil {
		wire = resp.Body.AppendTo(nil)
	} else {
		wire = join(c.k.t, resp.Parts)
	}
	if resp.Release != nil {
		resp.Release()
	}
	out := c.req.ResponseKind()
	out.SetVersion(c.req.GetVersion())
	check(c.k.t, out.ReadFrom(wire))
	return out
}

// ask makes one request and returns its response.
func ask[R kmsg.Response](k *kit, version int16, req kmsg.Request) R {
	k.t.Helper()
	return k.begin(version, req).finish().(R)
}

// create makes a topic.
func (k *kit) create(name string, partitions int32, configs ...string) *topic.Topic {
	k.t.Helper()
	spec := topic.Spec{Name: name, Partitions: partitions, ReplicationFactor: -1}
	for i := 0; i < len(configs); i += 2 {
		spec.Configs = append(spec.Configs, topic.ConfigEntry{Name: configs[i], Value: &configs[i+1]})
	}
	created := k.Registry.Create(context.Background(), []topic.Spec{spec}, false)
	check(k.t, created[0].Err)
	return created[0].Topic
}

// batch builds a batch of records with the values.
func batch(t testing.TB, o record.Options, values ...string) record.Batch {
	t.Helper()
	b := record.NewBuilder(o)
	for i, v := range values {
		check(t, b.Append(time.Now().UnixMilli(), fmt.Appendf(nil, "k%d", i), []byte(v)))
	}
	out, err := b.Batch()
	check(t, err)
	return out
}

// append puts a batch into a partition without the wire, and returns its base offset.
func (k *kit) append(name string, partition int32, values ...string) int64 {
	k.t.Helper()
	log, err := k.Handler.log(name, partition)
	check(k.t, err)
	a, err := log.Append(batch(k.t, record.Options{}, values...))
	check(k.t, err)
	return a.BaseOffset
}

// wantCode compares an error code by its name.
func wantCode(t testing.TB, got int16, want *kerr.Error) {
	t.Helper()
	wantCode := int16(0)
	if want != nil {
		wantCode = want.Code
	}
	if got != wantCode {
		t.Fatalf("error code %d (%v), want %d (%v)", got, kerr.TypedErrorForCode(got), wantCode, want)
	}
}

func wantText(t testing.TB, got *string, want string) {
	t.Helper()
	if got == nil || *got != want {
		t.Fatalf("message %s, want %q", show(got), want)
	}
}

func show(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}

// eachVersion runs f for every accepted version of an API.
func (k *kit) eachVersion(key kmsg.Key, f func(t *testing.T, version int16)) {
	spec, ok := k.Lookup(key.Int16())
	if !ok {
		k.t.Fatalf("%v is not spoken", key)
	}
	for v := spec.Min; v <= spec.Max; v++ {
		k.t.(*testing.T).Run(fmt.Sprintf("v%d", v), func(t *testing.T) { f(t, v) })
	}
}
