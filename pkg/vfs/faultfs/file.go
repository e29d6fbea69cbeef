package faultfs

import (
	"io/fs"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A file passes each operation by the rules. Name and Size come from the
// wrapped file.
type file struct {
	vfs.File
	disk *FS
}

// Fd has nothing to give: a sendfile(2) would pass by the rules.
func (f *file) Fd() (uintptr, bool) { return 0, false }

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	op := vfs.Op{Kind: vfs.OpRead, Name: f.Name(), Offset: off, Length: int64(len(p))}
	err = f.do(op, nil, func(*Rule) error {
		n, err = f.File.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	op := vfs.Op{Kind: vfs.OpWrite, Name: f.Name(), Offset: off, Length: int64(len(p))}
	err = f.do(op, always, func(failing *Rule) error {
		if failing != nil && !failing.Happens {
			p = p[:min(failing.Short, len(p))]
			if len(p) == 0 {
				return nil
			}
		}
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *file) Truncate(size int64) error {
	extends := func() bool {
		now, err := f.Size()
		return err == nil && size > now
	}
	return f.do(vfs.Op{Kind: vfs.OpTruncate, Name: f.Name(), Offset: size}, extends,
		unlessFailing(func() error { return f.File.Truncate(size) }))
}

func (f *file) Sync() error {
	return f.do(vfs.Op{Kind: vfs.OpSync, Name: f.Name()}, nil, unlessFailing(f.File.Sync))
}

func (f *file) Allocate(offset, length int64) error {
	op := vfs.Op{Kind: vfs.OpAllocate, Name: f.Name(), Offset: offset, Length: length}
	return f.do(op, always, unlessFailing(func() error { return f.File.Allocate(offset, length) }))
}

// Close closes the wrapped file even if it fails, as close(2) does.
func (f *file) Close() error {
	return f.do(vfs.Op{Kind: vfs.OpClose, Name: f.Name()}, nil, func(*Rule) error { return f.File.Close() })
}

// do runs an operation. inner gets the rule that fails it, or nil, and does
// what is to happen; an error of its own goes first.
func (f *file) do(op vfs.Op, needsRoom func() bool, inner func(failing *Rule) error) error {
	rule := f.disk.decide(op, needsRoom)
	err := inner(rule)
	if rule == nil {
		return err
	}
	if rule.Then != nil {
		rule.Then(f.File)
	}
	if err != nil {
		return err
	}
	return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: rule.Err}
}

// unlessFailing makes an operation that a failing rule keeps from happening.
func unlessFailing(inner func() error) func(*Rule) error {
	return func(failing *Rule) error {
		if failing != nil && !failing.Happens {
			return nil
		}
		return inner()
	}
}
