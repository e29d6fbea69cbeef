package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// DropUnsynced does to a file of this package what a failing fsync does on
// Linux: what was written since the last Sync is still there for readers, but
// it is not on the disk, counts as clean, and no later Sync, which succeeds,
// writes it (ST-61). It is made for the Then of a faultfs.Rule:
//
//	faulty.Fail(faultfs.Rule{Kinds: vfs.OpSync, Then: crashfs.DropUnsynced})
func DropUnsynced(f vfs.File) {
	cf, ok := f.(*file)
	if !ok {
		panic(fmt.Sprintf("crashfs.DropUnsynced: %s is a %T", f.Name(), f))
	}
	cf.disk.mu.Lock()
	defer cf.disk.mu.Unlock()
	cf.node.file.drop()
}

// DropUnsyncedNames does to a directory of this package what a failing fsync
// of it may do: the names made, renamed and removed since its last SyncDir are
// what readers see, and no later SyncDir, which succeeds, makes them durable. It is made for the ThenDir
// of a faultfs.Rule.
func DropUnsyncedNames(d vfs.FS, dir string) {
	disk, ok := d.(*FS)
	if !ok {
		panic(fmt.Sprintf("crashfs.DropUnsyncedNames: the disk of %s is a %T", dir, d))
	}
	disk.mu.Lock()
	defer disk.mu.Unlock()
	if node, err := disk.lookupLocked(dir); err == nil && node.dir != nil {
		node.dir.pending = nil
	}
}

// A file is an open file. It stays usable when its name is removed.
type file struct {
	disk     *FS
	node     *inode
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *file) Name() string { return f.name }

// Fd has nothing to give: the content is in memory.
func (f *file) Fd() (uintptr, bool) { return 0, false }

func (f *file) Close() error {
	if f.closed.Swap(true) {
		return f.failed("close", fs.ErrClosed)
	}
	return nil
}

func (f *file) Size() (int64, error) {
	f.disk.mu.RLock()
	defer f.disk.mu.RUnlock()
	if err := f.usableLocked(); err != nil {
		return 0, f.failed("stat", err)
	}
	return int64(len(f.node.file.data)), nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.RLock()
	defer f.disk.mu.RUnlock()
	err := f.usableLocked()
	if err == nil && off < 0 {
		err = errors.New("negative offset")
	}
	if err != nil {
		return 0, f.failed("read", err)
	}
	return f.node.file.readAt(p, off) // io.EOF is returned as it is
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.failed("write", errors.New("negative offset"))
	}
	op := vfs.Op{Kind: vfs.OpWrite, Name: f.name, Offset: off, Length: int64(len(p))}
	if err := f.change("write", op, true, func(c *content) { c.writeAt(p, off) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) Truncate(size int64) error {
	if size < 0 {
		return f.failed("truncate", syscall.EINVAL)
	}
	op := vfs.Op{Kind: vfs.OpTruncate, Name: f.name, Offset: size}
	return f.change("truncate", op, true, func(c *content) { c.truncate(size) })
}

// Sync works on a file that was opened for reading too, as fsync does.
func (f *file) Sync() error {
	op := vfs.Op{Kind: vfs.OpSync, Name: f.name}
	return f.change("sync", op, false, (*content).sync)
}

// Allocate reserves nothing: this disk has no end (faultfs makes one full).
func (f *file) Allocate(_, _ int64) error {
	f.disk.mu.RLock()
	defer f.disk.mu.RUnlock()
	if err := f.usableLocked(); err != nil {
		return f.failed("allocate", err)
	}
	return nil
}

// change does a counted operation on the content.
func (f *file) change(verb string, op vfs.Op, writes bool, do func(*content)) error {
	if f.closed.Load() {
		return f.failed(verb, fs.ErrClosed)
	}
	if writes && !f.writable {
		return f.failed(verb, syscall.EBADF)
	}
	if err := f.disk.begin(op); err != nil {
		return f.failed(verb, err)
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	do(f.node.file)
	if writes {
		f.node.modTime = time.Now()
	}
	return nil
}

func (f *file) usableLocked() error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	return f.disk.powerLocked()
}

func (f *file) failed(verb string, err error) error {
	return &fs.PathError{Op: verb, Path: f.name, Err: err}
}

// info describes a file or directory by the last element of its name.
func (node *inode) info(base string) fs.FileInfo {
	fi := info{name: base, mode: node.mode, modTime: node.modTime}
	if node.file != nil {
		fi.size = int64(len(node.file.data))
	}
	return fi
}

// An info is what Stat and ReadDir tell, as of their call.
type info struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.modTime }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
