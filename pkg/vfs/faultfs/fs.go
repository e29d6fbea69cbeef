package faultfs

import (
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// do runs an operation on a name, or fails it.
func (d *FS) do(op vfs.Op, needsRoom func() bool, inner func() error) error {
	rule := d.decide(op, needsRoom)
	if rule == nil {
		return inner()
	}
	if rule.Happens {
		if err := inner(); err != nil {
			return err
		}
	}
	if rule.ThenDir != nil && op.Kind == vfs.OpSyncDir {
		rule.ThenDir(d.inner, op.Name)
	}
	return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: rule.Err}
}

var _ vfs.FS = (*FS)(nil)

// OpenFile is vfs.FS.
func (d *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	op := vfs.Op{Kind: vfs.OpOpen, Name: name}
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		op.Kind = vfs.OpCreate
	}
	var f vfs.File
	err := d.do(op, func() bool { return flag&os.O_CREATE != 0 && d.isNew(name) }, func() (err error) {
		f, err = d.inner.OpenFile(name, flag, perm)
		return err
	})
	if err != nil {
		if f != nil {
			_ = f.Close() // created, as the rule wants, but nobody gets it
		}
		return nil, err
	}
	return &file{File: f, disk: d}, nil
}

func (d *FS) isNew(name string) bool {
	_, err := d.inner.Stat(name)
	return err != nil
}

func always() bool { return true }

// Mkdir is vfs.FS.
func (d *FS) Mkdir(name string, perm fs.FileMode) error {
	return d.do(vfs.Op{Kind: vfs.OpMkdir, Name: name}, func() bool { return d.isNew(name) },
		func() error { return d.inner.Mkdir(name, perm) })
}

// Remove is vfs.FS.
func (d *FS) Remove(name string) error {
	return d.do(vfs.Op{Kind: vfs.OpRemove, Name: name}, nil, func() error { return d.inner.Remove(name) })
}

// RemoveAll is vfs.FS. It is one operation, which fails before it removes
// anything.
func (d *FS) RemoveAll(name string) error {
	return d.do(vfs.Op{Kind: vfs.OpRemoveAll, Name: name}, nil, func() error { return d.inner.RemoveAll(name) })
}

// Rename is vfs.FS.
func (d *FS) Rename(oldname, newname string) error {
	return d.do(vfs.Op{Kind: vfs.OpRename, Name: oldname, To: newname}, nil,
		func() error { return d.inner.Rename(oldname, newname) })
}

// SetModTime is vfs.FS. It counts as a write.
func (d *FS) SetModTime(name string, t time.Time) error {
	return d.do(vfs.Op{Kind: vfs.OpWrite, Name: name}, nil, func() error { return d.inner.SetModTime(name, t) })
}

// Stat is vfs.FS.
func (d *FS) Stat(name string) (fi fs.FileInfo, err error) {
	err = d.do(vfs.Op{Kind: vfs.OpStat, Name: name}, nil, func() (err error) {
		fi, err = d.inner.Stat(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return fi, nil
}

// ReadDir is vfs.FS.
func (d *FS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = d.do(vfs.Op{Kind: vfs.OpReadDir, Name: name}, nil, func() (err error) {
		entries, err = d.inner.ReadDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// SyncDir is vfs.FS.
func (d *FS) SyncDir(name string) error {
	return d.do(vfs.Op{Kind: vfs.OpSyncDir, Name: name}, nil, func() error { return d.inner.SyncDir(name) })
}

// Lock is vfs.FS.
func (d *FS) Lock(name string) (held io.Closer, err error) {
	err = d.do(vfs.Op{Kind: vfs.OpLock, Name: name}, func() bool { return d.isNew(name) }, func() (err error) {
		held, err = d.inner.Lock(name)
		return err
	})
	if err != nil {
		if held != nil {
			_ = held.Close() // taken, as the rule wants, but nobody gets it
		}
		return nil, err
	}
	return held, nil
}
