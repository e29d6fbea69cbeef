// Package crashfs is a disk in memory that loses power.
//
// A power cut is a pure function: CrashClone returns a second, independent
// disk as it would be after the power went at this instant, and the first
// carries on. What survives is what POSIX promises and no more, and where
// POSIX leaves it open the disk is nastier than real ones (ST-70):
//
//   - A file keeps what its last Sync covered. Each 512-byte sector written
//     since survives or not, on its own, in its last state or an earlier one.
//   - Its length is the synced one, the last one, or one between. It may have
//     grown without its data, which then reads as zeros; a Truncate may not
//     have happened.
//   - A directory keeps the names of its last SyncDir. Each creation, renaming
//     and removal since survives or not, on its own and in any order. A rename
//     inside a directory keeps at least one of its two names, if the old one
//     was durable; between two directories it may lose both. Syncing a file
//     does not make its name durable.
//   - Locks are free: their holder is gone.
//
// KillClone is the milder accident: the process is gone and the system runs
// on, so everything written is there, but no more durable than it was.
//
// A sweep cuts the power after every operation of a workload:
//
//	for n := 0; ; n++ {
//		disk := crashfs.New()
//		disk.StopAfter(n)
//		promised := workload(disk) // what it was told is durable, until it failed
//		for _, s := range crashfs.Survivals(uint64(n), 8) {
//			check(promised, disk.CrashClone(s))
//		}
//		if _, cut := disk.Cut(); !cut {
//			break // the workload ran to its end: every operation was cut once
//		}
//	}
package crashfs

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// ErrPowerLost is what every operation returns after the power is lost
// (StopAfter), wrapped in an *fs.PathError or *os.LinkError.
var ErrPowerLost = errors.New("power lost")

// FS is a disk. It implements vfs.FS and may be used by several goroutines.
//
// Names are relative to its root, with or without a leading separator: "data"
// and "/data" are the same directory. Permissions are stored, not enforced.
type FS struct {
	mu sync.RWMutex // guards all below, and every inode of this disk

	root  *inode
	locks map[*inode]bool // the locks that are held

	count int          // operations of OpChanges begun
	left  int          // how many more the power lasts; negative: for ever
	cut   *vfs.Op      // the first operation that found no power
	onOp  func(vfs.Op) // called before each of them
}

// New returns an empty disk: it has a root directory and nothing else.
func New() *FS {
	return &FS{root: newDir(fs.ModeDir | 0o755), locks: map[*inode]bool{}, left: -1}
}

// StopAfter cuts the power after n more operations that change what survives
// (vfs.OpChanges; a RemoveAll is one for each name it removes). The operation
// after them and all later ones, reads too, fail with ErrPowerLost. A negative
// n is never.
//
// An operation that is cut in the middle is no case of its own: a half-done
// write, rename or sync leaves what the whole write or rename, or no sync,
// may leave when nothing has been synced.
func (d *FS) StopAfter(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.cut = n, nil
}

// Cut returns the first changing operation that found the power gone. It is
// false if there was none: the workload had ended before, or only read.
func (d *FS) Cut() (vfs.Op, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.cut == nil {
		return vfs.Op{}, false
	}
	return *d.cut, true
}

// Count is the number of changing operations (vfs.OpChanges) so far.
func (d *FS) Count() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.count
}

// OnOp has f called before each changing operation, in the goroutine of its
// caller and without a lock, so that f may clone the disk: the clone holds
// every operation but this one. With f a sweep needs one run of its workload.
func (d *FS) OnOp(f func(vfs.Op)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onOp = f
}

// begin counts an operation that changes the disk and calls the hook. It
// returns ErrPowerLost if the power is gone.
func (d *FS) begin(op vfs.Op) error {
	d.mu.Lock()
	if d.left == 0 {
		if d.cut == nil {
			d.cut = &op
		}
		d.mu.Unlock()
		return ErrPowerLost
	}
	if d.left > 0 {
		d.left--
	}
	d.count++
	hook := d.onOp
	d.mu.Unlock()
	if hook != nil {
		hook(op)
	}
	return nil
}

// powerLocked is for the operations that change nothing: they work until the
// first operation after the last that StopAfter allowed.
func (d *FS) powerLocked() error {
	if d.cut != nil {
		return ErrPowerLost
	}
	return nil
}
