package commitlog

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-9, ST-54: however many clean stops there were in a segment, an open after
// a kill reads no sealed one: the snapshot of the last roll is still there.
func TestCleanStopsLeaveTheSnapshotOfTheLastRoll(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	open := func(clean bool) *Log {
		o := testOptions(disk, 1)
		o.Config.SegmentBytes, o.Clean = 3000, clean
		return mustOpen(t, o)
	}
	sequence := int32(0)
	send := func(l *Log, size int) {
		mustAppend(t, l, spec{size: size, id: 7, sequence: sequence})
		sequence++
	}
	l := open(false)
	for range 4 {
		send(l, 2000) // a segment each
	}
	for range 4 {
		mustClose(t, l)
		l = open(true)
		send(l, 10)
	}
	mustFlush(t, l)
	l.Abandon() // the process is killed

	var mu sync.Mutex
	var sealed []string
	disk.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		// Of the one before it looks at the last header, which the snapshot is bound to.
		read := strings.HasSuffix(op.Name, segment.FileName(0, segment.LogSuffix)) || strings.HasSuffix(op.Name, segment.FileName(1, segment.LogSuffix))
		if op.Kind == vfs.OpOpen && read {
			sealed = append(sealed, op.Name)
		}
	})
	l = open(false)
	disk.OnOp(nil)
	mu.Lock()
	defer mu.Unlock()
	if len(sealed) > 0 {
		t.Errorf("the open read sealed segments: %v", sealed)
	}
	if n := len(l.snapshots); n > keptSnapshots {
		t.Errorf("%d snapshots stay", n)
	}
	if a := mustAppend(t, l, spec{size: 10, id: 7, sequence: sequence - 1}); !a.Duplicate {
		t.Error("the last batch again is not known")
	}
	mustClose(t, l)
}

// ST-60: however often a roll fails for want of room, it holds no more files
// open than it did the first time.
func TestARollThatIsTriedAgainWritesItsSnapshotOnce(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 3000
	l := openNew(t, o)
	mustAppend(t, l, spec{size: 2000, id: 7})
	full := disk.Fail(faultfs.Rule{Kinds: vfs.OpCreate, Name: "*.log", Times: -1, Err: syscall.ENOSPC})
	for range 20 {
		if _, err := l.Append(batch(t, spec{size: 2000, id: 7, sequence: 1})); err == nil {
			t.Fatal("an append without room succeeds")
		}
	}
	l.mu.Lock()
	held := len(l.dirty.files)
	l.mu.Unlock()
	if held > 1 {
		t.Errorf("%d files wait for their sync", held)
	}
	full.Remove()
	mustAppend(t, l, spec{size: 2000, id: 7, sequence: 1})
	mustFlush(t, l)
}
