package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A user is a client of a broker whose disk is in trouble, with two topics: "used" has records, and "fresh" has no directory yet.
type user struct {
	peer
	b     *brokertest.Broker
	ids   map[string][16]byte
	ends  map[string]int64 // what was acknowledged
	n     int              // makes names
	parts int              // that "fresh" was given besides its first
}

func newUser(t *testing.T) *user {
	b := brokertest.Start(t)
	u := &user{peer: newPeer(t, b), b: b, ids: map[string][16]byte{}, ends: map[string]int64{}}
	for _, name := range []string{"used", "fresh", "old"} {
		id, err := u.create(name, 1)
		noError(t, err)
		u.ids[name] = id
	}
	noError(t, u.write("used", -1))
	noError(t, u.commit("g"))
	return u
}

// on is the user at another broker, with what it knows of this one.
func (u *user) on(b *brokertest.Broker) *user {
	v := *u
	v.peer, v.b = newPeer(u.t, b), b
	return &v
}

func (u *user) name() string {
	u.n++
	return fmt.Sprint("n", u.n)
}

// write wants what is acknowledged to be behind what was, without a gap: a refused write leaves no offset behind.
func (u *user) write(topic string, acks int16) error {
	offsets, errs := u.tryProduce(topic, u.ids[topic], acks, [][]byte{sweepBatch(u.t, -1, 0, [][]byte{[]byte("v"), []byte("w")})})
	if errs[0] == nil {
		if offsets[0] != u.ends[topic] {
			u.t.Errorf("a record of %s is at offset %d, the end was %d", topic, offsets[0], u.ends[topic])
		}
		u.ends[topic] = offsets[0] + 2
	}
	return errs[0]
}

// writeSilently is acks=0: nil if the connection stays, io.EOF if it is closed.
func (u *user) writeSilently(topic string) error {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, 0, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rt.Partitions = append(rt.Partitions, kmsg.ProduceRequestTopicPartition{Records: sweepBatch(u.t, -1, 0, [][]byte{[]byte("v")})})
	req.Topics = append(req.Topics, rt)
	conn, err := u.b.Net.Dial(u.t.Context(), "tcp", u.b.Addr())
	noError(u.t, err)
	defer func() { noError(u.t, conn.Close()) }()
	format := kmsg.NewRequestFormatter()
	_, err = conn.Write(format.AppendRequest(nil, req, 1))
	noError(u.t, err)
	versions := kmsg.NewPtrApiVersionsRequest() // answered after it, if the connection stays
	if _, err = conn.Write(format.AppendRequest(nil, versions, 2)); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		u.ends[topic]++
	}
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return err
}

func (u *user) commit(group string) error {
	return u.peer.commit(group, "used", u.ids["used"], []int64{1})
}

func (u *user) deleteOffset() error {
	req := kmsg.NewPtrOffsetDeleteRequest()
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic, t.Partitions = "used", append(t.Partitions, kmsg.NewOffsetDeleteRequestTopicPartition())
	req.Group, req.Topics = "g", append(req.Topics, t)
	resp := ask[*kmsg.OffsetDeleteResponse](u.peer, req)
	if resp.ErrorCode != 0 {
		return kerr.ErrorForCode(resp.ErrorCode)
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func (u *user) deleteGroup() error {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{"g"}
	return kerr.ErrorForCode(ask[*kmsg.DeleteGroupsResponse](u.peer, req).Groups[0].ErrorCode)
}

func (u *user) grow() error {
	err := u.peer.grow("fresh", u.parts+2)
	if err == nil {
		u.parts++
	}
	return err
}

func (u *user) alter(kind kmsg.ConfigResourceType, name, config string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = config, new("123456")
	r.Configs = append(r.Configs, c)
	req.Resources = append(req.Resources, r)
	return kerr.ErrorForCode(ask[*kmsg.IncrementalAlterConfigsResponse](u.peer, req).Resources[0].ErrorCode)
}

func (u *user) replaceConfigs() error {
	req := kmsg.NewPtrAlterConfigsRequest()
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "used"
	req.Resources = append(req.Resources, r)
	return kerr.ErrorForCode(ask[*kmsg.AlterConfigsResponse](u.peer, req).Resources[0].ErrorCode)
}

func (u *user) autoCreate() error {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = new(u.name())
	req.Topics, req.AllowAutoTopicCreation = append(req.Topics, t), true
	return kerr.ErrorForCode(ask[*kmsg.MetadataResponse](u.peer, req).Topics[0].ErrorCode)
}

// join is a new member of a group, alone in it.
func (u *user) join() error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = u.name(), 10_000, 10_000, "consumer"
	req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range"})
	resp := ask[*kmsg.JoinGroupResponse](u.peer, req)
	if errors.Is(kerr.ErrorForCode(resp.ErrorCode), kerr.MemberIDRequired) {
		req.MemberID = resp.MemberID
		resp = ask[*kmsg.JoinGroupResponse](u.peer, req)
	}
	if resp.ErrorCode != 0 {
		return kerr.ErrorForCode(resp.ErrorCode)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = req.Group, resp.MemberID, resp.Generation
	sync.ProtocolType, sync.Protocol = &req.ProtocolType, resp.Protocol
	sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: resp.MemberID, MemberAssignment: []byte("a")})
	if err := kerr.ErrorForCode(ask[*kmsg.SyncGroupResponse](u.peer, sync).ErrorCode); err != nil {
		return err
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = req.Group, resp.MemberID, resp.Generation
	return kerr.ErrorForCode(ask[*kmsg.HeartbeatResponse](u.peer, beat).ErrorCode)
}

// reads wants everything that was acknowledged to be read, of the offset that is committed too.
func (u *user) reads() error {
	for _, topic := range []string{"used", "fresh"} {
		if got := len(u.values(topic, u.ids[topic], 0)); got != int(u.ends[topic]) {
			return fmt.Errorf("%d records of %s are read, %d were acknowledged", got, topic, u.ends[topic])
		}
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = "used", u.ids["used"], []int32{0}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = "g", append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	if got := ask[*kmsg.OffsetFetchResponse](u.peer, req).Groups[0].Topics[0].Partitions[0]; got.Offset != 1 {
		return fmt.Errorf("the committed offset is %d, error code %d", got.Offset, got.ErrorCode)
	}
	return nil
}

// A diskCall is a request, and what the answer is when a disk is in trouble: nil for one that succeeds.
type diskCall struct {
	name string
	// full: the whole disk is; meta: a commit to meta.db has failed for good; fsync: of the log of topic "used".
	full, meta, fsync error
	ask               func(u *user) error
}

var diskCalls = []diskCall{
	{"Produce acks=1", kerr.KafkaStorageError, nil, kerr.KafkaStorageError, func(u *user) error { return u.write("used", 1) }},
	{"Produce acks=all", kerr.KafkaStorageError, nil, kerr.KafkaStorageError, func(u *user) error { return u.write("used", -1) }},
	{"Produce acks=0", io.EOF, nil, io.EOF, func(u *user) error { return u.writeSilently("used") }},
	{"Produce acks=1, first of the partition", kerr.KafkaStorageError, nil, nil, func(u *user) error { return u.write("fresh", 1) }},
	{"Produce acks=all, first of the partition", kerr.KafkaStorageError, nil, nil, func(u *user) error { return u.write("fresh", -1) }},
	{"Produce acks=0, first of the partition", io.EOF, nil, nil, func(u *user) error { return u.writeSilently("fresh") }},
	{"CreateTopics", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, func(u *user) error { _, err := u.create(u.name(), 1); return err }},
	{"CreatePartitions", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, (*user).grow},
	{"IncrementalAlterConfigs of a topic", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, func(u *user) error {
		return u.alter(kmsg.ConfigResourceTypeTopic, "used", retention)
	}},
	{"IncrementalAlterConfigs of the broker", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, func(u *user) error {
		return u.alter(kmsg.ConfigResourceTypeBroker, "", brokerConfigs[0])
	}},
	{"AlterConfigs", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, (*user).replaceConfigs},
	{"Metadata that would create a topic", kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition, nil, (*user).autoCreate},
	{"InitProducerId", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, (*user).initProducer},
	{"OffsetCommit", kerr.NotCoordinator, kerr.NotCoordinator, nil, func(u *user) error { return u.commit("g") }},
	{"OffsetCommit of a new group", kerr.NotCoordinator, kerr.NotCoordinator, nil, func(u *user) error { return u.commit("g2") }},
	{"JoinGroup, SyncGroup, Heartbeat", nil, nil, nil, (*user).join},
	{"Fetch, ListOffsets, OffsetFetch", nil, nil, nil, (*user).reads},
	// At the end, since the others want what they delete.
	{"OffsetDelete", kerr.NotCoordinator, kerr.NotCoordinator, nil, (*user).deleteOffset},
	{"DeleteGroups", kerr.NotCoordinator, kerr.NotCoordinator, nil, (*user).deleteGroup},
	{"DeleteTopics", kerr.KafkaStorageError, kerr.KafkaStorageError, nil, func(u *user) error { return u.remove("old") }},
	{"DeleteRecords", kerr.KafkaStorageError, kerr.KafkaStorageError, kerr.KafkaStorageError, func(u *user) error {
		_, errs := u.deleteTo("used", -1)
		return errs[0]
	}},
}

func (u *user) initProducer() error {
	return kerr.ErrorForCode(ask[*kmsg.InitProducerIDResponse](u.peer, kmsg.NewPtrInitProducerIDRequest()).ErrorCode)
}

// all asks everything, and wants each answer to be the one of the column; nil is success of all.
func (u *user) all(column func(*diskCall) error) {
	u.t.Helper()
	for i := range diskCalls {
		c := &diskCalls[i]
		var want error
		if column != nil {
			want = column(c)
		}
		if got := c.ask(u); !errors.Is(got, want) {
			u.t.Errorf("%s: %v, not %v", c.name, got, want)
		}
	}
}

// ST-60, ST-64: what every request is answered on a full disk; all of it succeeds once there is room, with nothing between, and
// a power cut then takes nothing.
func TestAFullDiskIsAnsweredByRetriableErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUser(t)
		for range 2 {
			u.b.SetFull(true)
			u.all(func(c *diskCall) error { return c.full })
			u.b.SetFull(false)
			noError(t, u.reads())
			noError(t, u.write("used", -1))
			noError(t, u.write("fresh", -1))
		}
		v := u.on(u.b.PowerCut(crashfs.LoseUnsynced))
		noError(t, v.reads())
		u.all(nil)
	})
}

// ST-64: after a commit of meta.db that failed, whatever was at fault, topics, groups and configs can't be changed until the broker is started
// again; produces and reads go on.
func TestAFailedCommitOfMetaStopsWhatNeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUser(t)
		u.b.MayFail()
		u.b.FailMeta(func() error { return syscall.EIO })
		if err := u.commit("g"); !errors.Is(err, kerr.NotCoordinator) {
			t.Error(err)
		}
		u.b.FailMeta(nil) // the disk is well again, and nobody trusts it
		for range 2 {
			u.all(func(c *diskCall) error { return c.meta })
		}
		s, err := u.b.Snapshot()
		noError(t, err)
		v := u.on(s.Kill(t))
		noError(t, v.reads())
		v.all(nil)
	})
}

// ST-61: a failed fsync takes the partition offline for writes until the broker is started again, other partitions and reads go on.
// Then what is intact is kept, and none of it counts as flushed.
func TestAFailedFsyncTakesThePartitionOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUser(t)
		u.b.MayFail()
		fault := u.b.Fault.Fail(faultfs.Rule{Kinds: vfs.OpSync, Name: "used-0/*.log", Then: crashfs.DropUnsynced})
		if err := u.write("used", -1); !errors.Is(err, kerr.KafkaStorageError) {
			t.Error(err)
		}
		if fault.Hits() != 1 {
			t.Fatal("no fsync has failed")
		}
		u.ends["used"] += 2 // it is there to be read, though its producer was told that it is not
		for range 2 {
			for i := range diskCalls {
				if c := &diskCalls[i]; !strings.HasPrefix(c.name, "Delete") && !strings.HasPrefix(c.name, "OffsetDelete") {
					if err := c.ask(u); !errors.Is(err, c.fsync) {
						t.Errorf("%s: %v, not %v", c.name, err, c.fsync)
					}
				}
			}
		}
		if _, errs := u.deleteTo("used", -1); !errors.Is(errs[0], kerr.KafkaStorageError) {
			t.Error("DeleteRecords:", errs[0])
		}
		s, err := u.b.Snapshot()
		noError(t, err)
		lost := u.on(s.PowerCut(t, crashfs.KeepUnsynced)) // what was dropped is on no disk
		lost.ends = map[string]int64{"used": 2, "fresh": u.ends["fresh"]}
		noError(t, lost.reads())
		v := u.on(s.Kill(t))
		noError(t, v.reads())
		v.all(nil)
	})
}

// ST-64: a start on a full disk is an error that says so, and loses nothing.
func TestAStartOnAFullDiskIsAClearError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUser(t)
		s, err := u.b.Snapshot()
		noError(t, err)
		for range 2 {
			_, err := s.Try(t, func(b *brokertest.Broker) { b.SetFull(true) })
			if !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), "\n") > 0 || errors.Is(err, context.Canceled) {
				t.Errorf("a start on a full disk: %v", err)
			}
			t.Log(err)
		}
		v := u.on(s.Kill(t))
		noError(t, v.reads())
		v.all(nil)
	})
}
