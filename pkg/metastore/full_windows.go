package metastore

import "syscall"

// fullErrors are the errors of a disk without room: ERROR_HANDLE_DISK_FULL
// and ERROR_DISK_FULL.
var fullErrors = []syscall.Errno{39, 112, syscall.ENOSPC}
