//go:build linux

package fulldisk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ST-61, Show 3: an fsync of one partition fails. It is offline for writes from then on, although its disk is well again; reads and other partitions go on; a
// start brings it back with all that was acknowledged, and producers of franz-go and Java that have kept trying go on by themselves.
func TestAPartitionWhoseFsyncFailedIsOfflineUntilARestart(t *testing.T) {
	b := start(t, t.TempDir())
	p := newPeer(t, b.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0))
	one := newPeer(t, b.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0), kgo.RequiredAcks(kgo.LeaderAck()))
	for _, topic := range []string{"franz", "java", "other"} {
		p.want("create "+topic, p.create(topic, 1), nil)
	}
	pumps := []*pump{franz(t, b.addr, "franz"), java(t, b.addr, "java")}
	await(t, "there is load", func() bool { return pumps[0].acknowledged() > 100 && pumps[1].acknowledged() > 100 })

	var files []string
	for _, pump := range pumps {
		files = append(files, filepath.Join(b.data, pump.topic+"-0", "00000000000000000000.log"))
	}
	calls, detach := b.strace(true, files...)
	for _, pump := range pumps {
		await(t, pump.topic+" is offline", func() bool { return errors.Is(p.produce(pump.topic, 0, nil), kerr.KafkaStorageError) })
	}
	detach()
	injected, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(injected), "EIO"); n != len(pumps) { // each is tried once, and never again
		t.Errorf("%d calls of fsync failed, want %d:\n%s", n, len(pumps), injected)
	}
	for _, pump := range pumps {
		if err := one.produce(pump.topic, 0, nil); !errors.Is(err, kerr.KafkaStorageError) {
			t.Errorf("%s: acks=1 after the fsync failed: %v", pump.topic, err)
		}
		if p.bytesAt(pump.topic, 0, 0) == 0 {
			t.Errorf("%s: reads do not go on", pump.topic)
		}
	}
	if err := p.produce("other", 0, nil); err != nil {
		t.Errorf("another partition: %v", err)
	}
	p.want("commit", p.commit("g", "other", 1), nil)

	acknowledged := [2]int{pumps[0].acknowledged(), pumps[1].acknowledged()}
	b.Kill()
	b.restart()
	await(t, "the producers go on", func() bool {
		return pumps[0].acknowledged() > acknowledged[0]+100 && pumps[1].acknowledged() > acknowledged[1]+100
	})
	for _, pump := range pumps {
		pump.stop()
		pump.verify(t, b.addr, "after a restart")
	}
}

// ST-64: an fsync of meta.db fails. Commits and topics are refused from then on, although its disk is well again; produces and reads go on; a start brings it back with
// all that was acknowledged.
func TestMetaWhoseFsyncFailedIsReadOnlyUntilARestart(t *testing.T) {
	b := start(t, t.TempDir())
	p := newPeer(t, b.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0))
	p.want("create", p.create("a", 1), nil)
	p.want("commit", p.commit("g", "a", 7), nil)
	_, detach := b.strace(true, filepath.Join(b.data, "meta.db"))
	for range 2 {
		p.want("commit", p.commit("g", "a", 8), kerr.NotCoordinator)
		p.want("create", p.create("b", 1), kerr.KafkaStorageError)
		p.want("auto-create", p.autoCreate("c"), kerr.UnknownTopicOrPartition)
		if err := p.produce("a", 0, []byte("x")); err != nil {
			t.Errorf("produce: %v", err)
		}
		if p.bytesAt("a", 0, 0) == 0 {
			t.Error("reads do not go on")
		}
		detach() // the second time round the disk is well
	}
	b.Kill()
	b.restart()
	p = newPeer(t, b.addr)
	if got := p.committed("g", "a"); got != 7 && got != 8 { // nobody was told that 8 is not there
		t.Errorf("committed is %d", got)
	}
	p.want("commit", p.commit("g", "a", 9), nil)
	p.want("create", p.create("d", 1), nil)
}

// ST-70: bbolt syncs meta.db for each commit that is acknowledged, counted by strace.
func TestACommitIsSynced(t *testing.T) {
	const commits = 20
	b := start(t, t.TempDir())
	p := newPeer(t, b.addr)
	p.want("create", p.create("a", 1), nil)
	calls, detach := b.strace(false, filepath.Join(b.data, "meta.db"))
	for n := range commits {
		p.want("commit", p.commit("g", "a", int64(n)), nil)
	}
	detach()
	traced, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	syncs := strings.Count(string(traced), "sync(") - strings.Count(string(traced), "resumed")
	t.Logf("%d commits, %d syncs of meta.db", commits, syncs)
	if syncs < commits {
		t.Errorf("%d syncs for %d commits that were acknowledged one after the other", syncs, commits)
	}
}
