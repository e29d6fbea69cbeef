// Package vfs is the only door to the disk. The storage packages see files
// through FS and File, so that tests can run the real code on a disk that
// fails on request (faultfs) or loses power (crashfs).
package vfs

import (
	"io"
	"io/fs"
	"time"
)

// FS is a file system. Names are ordinary paths of the operating system.
// Errors satisfy errors.Is with fs.ErrNotExist, fs.ErrExist and
// fs.ErrPermission, and unwrap to the operating system's error (ENOSPC, EIO).
//
// Durability follows POSIX and nothing more: the content of a file is durable
// once File.Sync has returned nil, and a name that was created, renamed or
// removed is so once SyncDir of its directory has.
type FS interface {
	// OpenFile opens a file with a combination of os.O_RDONLY, os.O_RDWR,
	// os.O_CREATE, os.O_EXCL and os.O_TRUNC. Nothing appends: writes name
	// their offset.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory.
	Mkdir(name string, perm fs.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a directory with all that is in it; a name that does
	// not exist is no error.
	RemoveAll(name string) error
	// Rename moves a file or directory, replacing a file at newname.
	Rename(oldname, newname string) error
	// SetModTime sets when a file was last written, as Stat tells it.
	SetModTime(name string, t time.Time) error
	// Stat describes a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory in the order of names.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Lock takes the exclusive lock of a file, which it creates if need be.
	// It does not wait: a lock held by another process (or another Lock of
	// this one) is ErrLocked. Closing releases it.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt and WriteAt may be called concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name that the file was opened with.
	Name() string
	// Size is the length in bytes.
	Size() (int64, error)
	// Truncate cuts the file, or extends it with zeros.
	Truncate(size int64) error
	// Sync makes the content (and the length) durable: fdatasync on Linux,
	// F_FULLFSYNC on macOS. After an error the state of the unsynced part is
	// unknown, and a later nil proves nothing (ST-61).
	Sync() error
	// Allocate reserves blocks for a range without changing the size. It is
	// an optimisation: where the system can't, it does nothing. ENOSPC is
	// reported.
	Allocate(offset, length int64) error
	// Fd is the descriptor for sendfile(2), valid until Close; ok is false
	// for a file that has none.
	Fd() (fd uintptr, ok bool)
}
