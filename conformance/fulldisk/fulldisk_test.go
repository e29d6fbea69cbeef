//go:build linux

package fulldisk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ST-60, Show 3: a file system fills up under the load of a producer of franz-go and one of Java. What writes is refused with the codes that have clients
// try again, reads and groups go on; once there is room all goes on by itself, and nothing is lost, neither then nor after a kill.
func TestWritesResumeOnceTheDiskHasRoom(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			const size, held = 48 << 20, 24 << 20
			dir := mount(t, kind, size)
			b := start(t, filepath.Join(dir, "data"))
			p := newPeer(t, b.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0))
			for _, topic := range []string{"franz", "java", "probe"} {
				p.want("create "+topic, p.create(topic, 1), nil)
			}
			if err := p.produce("probe", 0, []byte("first")); err != nil {
				t.Fatal(err)
			}
			p.want("commit", p.commit("g", "probe", 1), nil)
			free := ballast(t, dir, held)
			pumps := []*pump{franz(t, b.addr, "franz"), java(t, b.addr, "java")}

			probe := make([]byte, 100<<10) // more than what is left
			var refusal error
			await(t, "the disk is full", func() bool {
				refusal = p.produce("probe", 0, probe)
				return refusal != nil
			})
			if !errors.Is(refusal, kerr.KafkaStorageError) {
				t.Errorf("a full disk answers %v", refusal)
			}
			t.Logf("full: %d bytes are left, %d and %d records are acknowledged", room(t, dir), pumps[0].acknowledged(), pumps[1].acknowledged())
			turned := refused(t, b, p, probe)
			for _, pump := range pumps { // nobody has room for a record of 1 KiB
				still := pump.acknowledged()
				await(t, "the producers are stopped", func() bool {
					now := pump.acknowledged()
					stopped := now == still
					still = now
					return stopped
				})
			}

			free()
			var before [2]int
			for i, pump := range pumps {
				before[i] = pump.acknowledged()
			}
			began := time.Now()
			await(t, "writes go on", func() bool {
				return pumps[0].acknowledged() > before[0]+500 && pumps[1].acknowledged() > before[1]+500
			})
			t.Logf("resumed: 500 records more of each after %v", time.Since(began).Round(time.Millisecond))
			for _, pump := range pumps {
				pump.stop()
				pump.verify(t, b.addr, "resumed")
			}
			p.want("commit", p.commit("g", "probe", 1), nil)
			p.want("commit that was refused", p.commit(turned, "probe", 1), nil)
			b.Kill()
			b.restart()
			p = newPeer(t, b.addr)
			for _, pump := range pumps {
				pump.verify(t, b.addr, "after a kill")
			}
			if got := p.committed("g", "probe"); got != 1 {
				t.Errorf("committed is %d", got)
			}
		})
	}
}

// refused asks a broker on a full disk for all that writes, and for what does not. What needs no new block may be done: it is durable then. It returns
// a group whose commit was refused.
func refused(t *testing.T, b *broker, p *peer, large []byte) (turned string) {
	t.Helper()
	p.metadata = strings.Repeat("m", 4000)
	for n := 0; turned == ""; n++ { // until meta.db has to grow
		group := fmt.Sprint("g", n)
		if code := p.commit(group, "probe", 1); code != 0 {
			p.want("commit", code, kerr.NotCoordinator)
			turned = group
			t.Logf("commit %d with %d bytes is refused", n, len(p.metadata))
		} else if n == 2000 {
			t.Fatal("no commit is refused")
		}
	}
	p.metadata = ""
	p.told("OffsetCommit", p.commit("g", "probe", 1), nil, kerr.NotCoordinator)
	p.told("CreateTopics", p.create("late", 1), nil, kerr.KafkaStorageError)
	p.told("Metadata that creates", p.autoCreate("later"), nil, kerr.UnknownTopicOrPartition)
	gone := new(disconnects)
	none := newPeer(t, b.addr, kgo.RequiredAcks(kgo.NoAck()), kgo.WithHooks(gone), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0))
	_ = none.produce("probe", 0, large) // nobody answers
	await(t, "the connection of an acks=0 produce is closed", func() bool { return gone.n.Load() > 0 })
	if p.bytesAt("probe", 0, 0) == 0 {
		t.Error("reads do not go on")
	}
	if got := p.committed("g", "probe"); got != 1 {
		t.Errorf("committed is %d", got)
	}
	member(t, b)
	return turned
}

// disconnects counts the connections that the broker has closed.
type disconnects struct{ n atomic.Int32 }

func (d *disconnects) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { d.n.Add(1) }

// member wants a new member of a new group to be let in, to consume and to leave.
func member(t *testing.T, b *broker) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumerGroup("late"), kgo.ConsumeTopics("probe"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if f := cl.PollFetches(ctx); f.Err() != nil || f.NumRecords() == 0 {
		t.Errorf("a new member gets %d records: %v", f.NumRecords(), f.Err())
	}
}
