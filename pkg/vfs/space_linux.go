package vfs

import "golang.org/x/sys/unix"

// Space is the size of the volume that a directory of the operating system is
// on, and how much of it an unprivileged process may still use, in bytes.
func Space(dir string) (total, usable int64, err error) {
	var s unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Statfs(dir, &s) }); err != nil {
		return 0, 0, err
	}
	return int64(s.Blocks) * s.Frsize, int64(s.Bavail) * s.Frsize, nil
}
