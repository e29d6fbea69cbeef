package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Close flushes everything, writes the producer snapshot and the indexes, and
// closes the files. After an error the stop was not clean. Appends end with
// KAFKA_STORAGE_ERROR, which clients retry.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.endLocked(fmt.Errorf("%s: the log is closed: %w", l.name, kerr.KafkaStorageError)) {
		return nil
	}
	err := l.finishLocked()
	l.wakeWaitersLocked()
	return errors.Join(err, l.closeFilesLocked())
}

// Abandon closes the files without flushing: the topic is deleted. Waiters
// and watchers are woken; later calls fail with UNKNOWN_TOPIC_OR_PARTITION.
func (l *Log) Abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.endLocked(fmt.Errorf("%s: the topic is deleted: %w", l.name, kerr.UnknownTopicOrPartition)) {
		return
	}
	if err := l.closeFilesLocked(); err != nil {
		l.logger().Warn("files of a deleted topic", "error", err) // they are on their way out
	}
}

// endLocked makes every later call fail, and returns when nobody is at the disk.
// It is false if the log has ended before.
func (l *Log) endLocked(err error) bool {
	if !l.ended.CompareAndSwap(nil, &err) {
		return false
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.compacting != nil {
		l.compacting() // it may wait for its turn at the disk
	}
	for l.running || l.removing || l.compacting != nil {
		l.synced.Wait()
	}
	l.watchers.wake()
	return true
}

// finishLocked makes what the last flush has left durable, and what the next
// open wants: the indexes, and the producers' state. A log that was only read is as the last stop left it.
func (l *Log) finishLocked() error {
	if l.failed != nil {
		return l.failed
	}
	if l.active == nil || !l.touched {
		return nil
	}
	at := l.marks.load()
	l.o.Stats.Syncs.Add(2) // the indexes
	if err := l.active.opened.Load().WriteIndexes(true); err != nil {
		return l.storageError("write the indexes", err)
	}
	if err := l.saveSnapshotLocked(); err != nil {
		return l.storageError("write the producer snapshot", err)
	}
	l.dirty.dir = true // the names of the indexes
	if err := l.sync(l.takeDirtyLocked(l.active)); err != nil {
		return l.failLocked("sync at the stop", err)
	}
	l.flushedLocked(at.End)
	return nil
}

func (l *Log) closeFilesLocked() error {
	var errs []error
	for _, f := range l.takeDirtyLocked(nil).files {
		errs = append(errs, f.Close())
	}
	l.wakeWaitersLocked()
	l.synced.Broadcast()
	return errors.Join(append(errs, l.closeParts())...)
}

// closeParts closes the segments; regions that are still being sent keep theirs.
func (l *Log) closeParts() error {
	var errs []error
	for _, p := range slices.Concat(l.dropped, *l.parts.Load()) {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
