package vfs

import (
	"fmt"
	"math/bits"
)

// A Kind is one kind of file operation, or a set of several. The disks for
// tests (faultfs, crashfs) label operations with it.
type Kind uint16

// The operations of FS and File. Size, Name and Fd touch no disk and are none.
const (
	OpOpen      Kind = 1 << iota // OpenFile without O_CREATE and O_TRUNC
	OpCreate                     // OpenFile with one of them
	OpMkdir                      // Mkdir
	OpRemove                     // Remove
	OpRemoveAll                  // RemoveAll
	OpRename                     // Rename
	OpStat                       // Stat
	OpReadDir                    // ReadDir
	OpSyncDir                    // SyncDir
	OpLock                       // Lock
	OpRead                       // ReadAt
	OpWrite                      // WriteAt
	OpTruncate                   // Truncate
	OpSync                       // Sync
	OpAllocate                   // Allocate
	OpClose                      // Close

	// OpChanges are the operations that change what a power cut leaves.
	OpChanges = OpCreate | OpMkdir | OpRemove | OpRemoveAll | OpRename | OpSyncDir | OpWrite | OpTruncate | OpSync
)

var kindNames = [...]string{
	"open", "create", "mkdir", "remove", "removeall", "rename", "stat", "readdir",
	"syncdir", "lock", "read", "write", "truncate", "sync", "allocate", "close",
}

// String is the name of the kind, or the names of the set with bars between.
func (k Kind) String() string {
	s := ""
	for k != 0 {
		if s != "" {
			s += "|"
		}
		s += kindNames[bits.TrailingZeros16(uint16(k))]
		k &= k - 1
	}
	return s
}

// An Op is one file operation.
type Op struct {
	Kind   Kind
	Name   string // the file or directory as the caller named it; the old name of a Rename
	To     string // the new name of a Rename
	Offset int64  // of a read, write or allocation; the new size of a Truncate
	Length int64  // of a read, write or allocation, in bytes
}

// String is the operation in one line, for the report of a failed sweep.
func (op Op) String() string {
	switch op.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s to %s", op.Name, op.To)
	case OpRead, OpWrite, OpAllocate:
		return fmt.Sprintf("%s %s at %d+%d", op.Kind, op.Name, op.Offset, op.Length)
	case OpTruncate:
		return fmt.Sprintf("truncate %s to %d", op.Name, op.Offset)
	default:
		return op.Kind.String() + " " + op.Name
	}
}
