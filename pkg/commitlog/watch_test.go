package commitlog

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

func woken(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestWatchersAreWoken(t *testing.T) {
	l := mustOpen(t, testOptions(crashfs.New(), 1))
	a, b := make(chan struct{}, 1), make(chan struct{}, 1)
	cancelA, cancelB := l.Watch(a), l.Watch(b)
	if woken(a) || woken(b) {
		t.Error("for nothing")
	}
	mustAppend(t, l, spec{id: 3})
	mustAppend(t, l, spec{id: 3, sequence: 1}) // does not block, though nobody took the first
	if !woken(a) || !woken(b) || woken(a) {
		t.Error("not once")
	}
	mustAppend(t, l, spec{id: 3, sequence: 1})
	if woken(a) {
		t.Error("a duplicate is no append")
	}
	cancelA()
	cancelA() // is harmless
	mustAppend(t, l, spec{})
	if woken(a) || !woken(b) {
		t.Error("after cancel")
	}
	mustClose(t, l)
	if !woken(b) {
		t.Error("the end of the log")
	}
	cancelB()
	if n := l.watchers.count.Load(); n != 0 || len(l.watchers.list) != 0 {
		t.Error(n)
	}
	defer l.Watch(a)()
	if !woken(a) {
		t.Error("a watch after the end")
	}
}
