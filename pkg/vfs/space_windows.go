package vfs

import "golang.org/x/sys/windows"

// Space is the size of the volume that a directory of the operating system is
// on, and how much of it an unprivileged process may still use, in bytes.
func Space(dir string) (total, usable int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var available, size uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &size, nil); err != nil {
		return 0, 0, err
	}
	return int64(size), int64(available), nil
}
