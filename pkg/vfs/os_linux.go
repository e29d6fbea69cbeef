package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync: the data and the length that is needed to read it, but
// not the times, whose journal write an fsync would wait for.
func (f osFile) Sync() error {
	return f.control("fdatasync", func(fd uintptr) error {
		return retryEINTR(func() error { return unix.Fdatasync(int(fd)) })
	})
}

// Allocate is fallocate with KEEP_SIZE. A Truncate to the size that the file
// has gives back what was reserved and not used (ext4, XFS).
func (f osFile) Allocate(offset, length int64) error {
	if length <= 0 {
		return nil
	}
	return f.control("fallocate", func(fd uintptr) error {
		err := retryEINTR(func() error {
			return unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, offset, length)
		})
		for _, cannot := range []error{unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL} {
			if errors.Is(err, cannot) {
				return nil // not on this file system: an optimisation only
			}
		}
		return err
	})
}
