package group

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

var errFull = &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC}

// A kit is a coordinator on a store of its own, with topics t and u of ten partitions.
type kit struct {
	testing.TB
	*Coordinator
	path     string
	disk     *crashfs.FS
	fault    *faultfs.FS // of the disk
	epoch    int32
	store    *metastore.Store
	settings *config.Settings
	clock    clock.Clock
	unclean  bool // what is opened was not closed
	topics   map[string]kafka.TopicID
	fail     atomic.Pointer[func() error] // before each commit of the store; nil: none
}

func newKit(t testing.TB) *kit {
	k := &kit{TB: t, path: filepath.Join(t.TempDir(), "meta.db"), disk: crashfs.New(), settings: config.Default(), clock: clock.System, topics: map[string]kafka.TopicID{}}
	k.openStore()
	k.makeTopic("t")
	k.makeTopic("u")
	k.open()
	t.Cleanup(k.close)
	return k
}

func (k *kit) openStore() {
	k.Helper()
	store, err := metastore.Open(metastore.Options{Path: k.path, Logger: slog.New(slog.DiscardHandler), Fail: func() error {
		if fail := k.fail.Load(); fail != nil {
			return (*fail)()
		}
		return nil
	}})
	if err != nil {
		k.Fatal(err)
	}
	k.store = store
}

func (k *kit) open() {
	k.Helper()
	k.epoch++
	k.fault = faultfs.New(k.disk)
	c, err := Open(Options{Unclean: k.unclean, Store: k.store, FS: k.fault, Dir: "/", Epoch: k.epoch, Clock: k.clock, Logger: slog.New(slog.DiscardHandler), Settings: k.settings,
		Topic: func(name string) (kafka.TopicImage, bool) {
			id, ok := k.topics[name]
			return kafka.TopicImage{Name: name, ID: id, Partitions: 10}, ok
		}})
	if err != nil {
		k.Fatal(err)
	}
	k.Coordinator = c
}

// close is for a kit that may be closed already.
func (k *kit) close() {
	_ = k.Close()
	_ = k.store.Close()
}

// restart stops and starts the broker's part that this is.
func (k *kit) restart() {
	k.Helper()
	if err := errors.Join(k.Close(), k.store.Close()); err != nil {
		k.Fatal(err)
	}
	k.openStore()
	k.open()
}

// cut is what is there after a power cut now that leaves nothing but what the store had committed.
func (k *kit) cut() *kit {
	k.Helper()
	disk := k.disk.CrashClone(crashfs.LoseUnsynced)
	path := filepath.Join(k.TempDir(), "meta.db")
	k.copyTo(path)
	return k.from(path, disk)
}

func (k *kit) copyTo(path string) {
	k.Helper()
	f, err := os.Create(path)
	if err != nil {
		k.Fatal(err)
	}
	_, err = k.store.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		k.Fatal(err)
	}
}

// from is a kit with the same topics on a copy of the store and of the disk.
func (k *kit) from(path string, disk *crashfs.FS) *kit {
	k.Helper()
	after := &kit{TB: k.TB, path: path, disk: disk, epoch: k.epoch, settings: k.settings, clock: k.clock, topics: k.topics, unclean: true}
	after.openStore()
	after.open()
	k.Cleanup(after.close)
	return after
}

func (k *kit) makeTopic(name string) {
	k.Helper()
	k.topics[name] = kafka.NewTopicID()
	if err := k.store.Update(k.Context(), func(tx *metastore.Tx) error {
		return tx.PutTopic(metastore.Topic{Name: name, ID: k.topics[name], Partitions: 10})
	}); err != nil {
		k.Fatal(err)
	}
}

// dropTopic deletes a topic as the registry does, but for the offsets.
func (k *kit) dropTopic(name string) kafka.TopicImage {
	k.Helper()
	id := k.topics[name]
	delete(k.topics, name)
	if err := k.store.Update(k.Context(), func(tx *metastore.Tx) error { return tx.DropTopic(name, id) }); err != nil {
		k.Fatal(err)
	}
	return kafka.TopicImage{Name: name, ID: id, Partitions: 10}
}

// failing has each commit of the store ask fail first.
func (k *kit) failing(fail func() error) { k.fail.Store(&fail) }

func full() error { return errFull }

// commit commits one offset of topic t for a consumer that is no member.
func (k *kit) commit(group string, partition int32, offset int64) error {
	return k.CommitOffsets(k.Context(), &CommitRequest{Group: group, Generation: -1, Version: 8, Retention: -1,
		Offsets: []OffsetToCommit{{Topic: "t", TopicID: k.topics["t"], Partition: partition, Offset: offset, LeaderEpoch: -1}}})[0]
}

// committed is a group's offset of a partition of topic t.
func (k *kit) committed(group string, partition int32) int64 {
	k.Helper()
	r := k.FetchOffsets(&FetchOffsetsRequest{Group: group, Partitions: []OffsetOf{{Topic: "t", Partition: partition}}})
	if r.Err != nil {
		k.Fatal(r.Err)
	}
	return r.Offsets[0].Offset
}

func (k *kit) want(err, want error) {
	k.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		k.Errorf("%v, want %v", err, want)
	}
}

// A member is a client that joins a group as consumers do.
type member struct {
	k       *kit
	group   string
	conn    uint64
	id      string
	session time.Duration
	last    JoinResponse
}

func (k *kit) member(group string) *member {
	return &member{k: k, group: group, session: 10 * time.Second}
}

// start sends a JoinGroup, and again with the id it is given.
func (m *member) start() <-chan JoinResponse {
	answer := m.request()
	select {
	case r := <-answer:
		if errors.Is(r.Err, kerr.MemberIDRequired) {
			m.id = r.MemberID
			return m.request()
		}
		put := make(chan JoinResponse, 1)
		put <- r
		return put
	default:
		return answer
	}
}

func (m *member) request() <-chan JoinResponse {
	return m.k.Join(&JoinRequest{Group: m.group, Conn: m.conn, MemberID: m.id, ClientID: "client", ClientHost: "/127.0.0.1", ProtocolType: "consumer",
		Protocols:      []Protocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}}},
		SessionTimeout: m.session, RebalanceTimeout: time.Minute, RequireKnownMember: true, SkipAssignment: true})
}

func (m *member) join() error {
	m.last = <-m.start()
	m.id = m.last.MemberID
	return m.last.Err
}

// sync asks for the assignment; the leader gives each member its own id.
func (m *member) sync() ([]byte, error) {
	r := <-m.startSync()
	return r.Assignment, r.Err
}

func (m *member) startSync() <-chan SyncResponse {
	req := &SyncRequest{Group: m.group, Conn: m.conn, MemberID: m.id, Generation: m.last.Generation, Named: true,
		ProtocolType: m.last.ProtocolType, ProtocolName: m.last.ProtocolName}
	for _, o := range m.last.Members {
		req.Assignments = append(req.Assignments, Assignment{MemberID: o.MemberID, Data: []byte(o.MemberID)})
	}
	return m.k.Sync(req)
}

func (m *member) heartbeat() error {
	return m.k.Heartbeat(&HeartbeatRequest{Group: m.group, Conn: m.conn, MemberID: m.id, Generation: m.last.Generation})
}

func (m *member) leave() error {
	r := m.k.Leave(&LeaveRequest{Group: m.group, Members: []Leaver{{MemberID: m.id}}})
	if r.Err != nil {
		return r.Err
	}
	return r.Members[0]
}

// alone makes a group with one member that is stable.
func (k *kit) alone(group string) *member {
	k.Helper()
	m := k.member(group)
	if err := m.join(); err != nil {
		k.Fatal(err)
	}
	if got, err := m.sync(); err != nil || string(got) != m.id {
		k.Fatalf("assigned %q, %v", got, err)
	}
	return m
}

// state is a group's state by name.
func (k *kit) state(group string) string {
	d, _ := k.Describe(group)
	return d.State
}

// pass lets a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
