//go:build linux || darwin

package vfs

import (
	"io/fs"
	"syscall"
)

// Owner is the user and group id that a file of the operating system belongs to, and
// whether there are such: a file in memory has none.
func Owner(fi fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
