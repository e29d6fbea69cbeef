// Package faultfs is a disk that fails on request. It wraps any vfs.FS: what
// no rule fails goes through to it.
//
// A sweep fails every operation of a workload once:
//
//	for n := 1; ; n++ {
//		disk := faultfs.New(crashfs.New())
//		fault := disk.Fail(faultfs.Rule{Nth: n})
//		err := workload(disk)
//		if fault.Hits() == 0 {
//			break // the workload ran to its end: every operation failed once
//		}
//		check(err, disk, fault)
//	}
//
// No file of this disk has a descriptor (File.Fd), so that every read comes
// by and can fail.
package faultfs

import (
	"math/bits"
	"sync"
	"syscall"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// FS wraps a file system. It may be used by several goroutines.
type FS struct {
	inner vfs.FS

	mu     sync.Mutex // guards all below
	rules  []*Fault
	full   bool
	counts [16]int // by the bit of the vfs.Kind
	onOp   func(vfs.Op)
}

// New wraps inner. Nothing fails until Fail or SetFull says so.
func New(inner vfs.FS) *FS { return &FS{inner: inner} }

// SetFull fills the disk, or makes room again. While it is full, every write
// and allocation, every Truncate that extends a file, and everything that
// makes a new name but a Rename fails with ENOSPC. Syncs succeed, and so do
// removals: they do not make room, only SetFull(false) does.
func (d *FS) SetFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// Count is the number of operations of the kinds so far, failed ones too.
func (d *FS) Count(kinds vfs.Kind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for ; kinds != 0; kinds &= kinds - 1 {
		n += d.counts[bits.TrailingZeros16(uint16(kinds))]
	}
	return n
}

// OnOp has f called before each operation, in the goroutine of its caller and
// without a lock.
func (d *FS) OnOp(f func(vfs.Op)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onOp = f
}

// decide counts an operation and returns the rule that fails it, or nil.
// needsRoom says, when the disk is full, whether the operation is refused.
func (d *FS) decide(op vfs.Op, needsRoom func() bool) *Rule {
	d.mu.Lock()
	hook := d.onOp
	d.mu.Unlock()
	if hook != nil {
		hook(op)
	}
	d.mu.Lock()
	d.counts[bits.TrailingZeros16(uint16(op.Kind))]++
	var rule *Rule
	for _, f := range d.rules {
		if f.dueLocked(op) && rule == nil {
			f.hits++
			f.last = op
			rule = &f.rule
		}
	}
	full := d.full
	d.mu.Unlock()
	if rule == nil && full && needsRoom != nil && needsRoom() {
		return &Rule{Err: syscall.ENOSPC}
	}
	return rule
}
