//go:build unix

package metastore

import "syscall"

// fullErrors are the errors of a disk or quota without room.
var fullErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}
