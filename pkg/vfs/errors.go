package vfs

import "errors"

// ErrLocked is returned by FS.Lock for a lock that somebody else holds.
var ErrLocked = errors.New("locked by another process")
