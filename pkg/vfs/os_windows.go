package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Sync is FlushFileBuffers, which os.File.Sync calls on Windows.
func (f osFile) Sync() error { return f.File.Sync() }

// Allocate does nothing: NTFS has no reservation that leaves the size alone
// without a privilege (SetFileValidData).
func (f osFile) Allocate(_, _ int64) error { return nil }

// Fd has nothing to give: there is no sendfile(2).
func (f osFile) Fd() (uintptr, bool) { return 0, false }

// lock locks one byte far beyond the content, so that the file can be read by
// others: locks of byte ranges are mandatory on Windows.
func lock(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 0x7fffffff}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// syncDir only checks that the directory is there: Windows has no flush of a
// directory for an unprivileged process. NTFS journals names, so they keep
// their order, but the last of them may be lost in a power cut.
func syncDir(name string) error {
	fi, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return &os.PathError{Op: "sync", Path: name, Err: windows.ERROR_DIRECTORY}
	}
	return nil
}
