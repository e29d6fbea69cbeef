package vfs

import (
	"io"
	"io/fs"
	"os"
	"time"
)

// OS is the operating system's file system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                { return os.RemoveAll(name) }
func (osFS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (osFS) SetModTime(name string, t time.Time) error  { return os.Chtimes(name, time.Time{}, t) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) SyncDir(name string) error                  { return syncDir(name) }

// Lock holds the lock by an open file: the system releases it when the process
// ends, however it ends, so no stale lock outlives a kill -9.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close() // the lock's error is the one to tell; nothing was written
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

// An osFile is an *os.File with what the interface adds. The struct is one
// pointer wide, so that a File holds it without an allocation.
type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// control runs a system call on the descriptor while Close is held off, and
// names the operation and the file in its error.
func (f osFile) control(op string, call func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	var callErr error
	if conn.Control(func(fd uintptr) { callErr = call(fd) }) != nil {
		callErr = fs.ErrClosed // the only reason not to call
	}
	if callErr != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: callErr}
	}
	return nil
}
