//go:build linux || darwin

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Fd is the descriptor of a regular file, which is always in blocking mode.
func (f osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }

// lock takes the BSD lock of an open file. It belongs to the open file and not
// to the process (as POSIX record locks do), so a second Lock in the same
// process is refused, and no other close of the file drops it.
func lock(f *os.File) error {
	err := retryEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// syncDir opens a directory for its fsync: without it a power cut may take
// back the creation, renaming or removal of a name in it.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		// The file system has no fsync for directories (some network file
		// systems). Nothing more can be asked of it; refusing to run there
		// would help nobody, and PostgreSQL decides the same.
		err = nil
	}
	return errors.Join(err, d.Close())
}

func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
