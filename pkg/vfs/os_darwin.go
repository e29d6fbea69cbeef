package vfs

// Sync is fcntl(F_FULLFSYNC), which os.File.Sync issues on macOS: a plain
// fsync there leaves the data in the drive's cache, where a power cut takes it.
func (f osFile) Sync() error { return f.File.Sync() }

// Allocate does nothing: APFS writes copies, so blocks that are reserved ahead
// (F_PREALLOCATE) make an append no cheaper.
func (f osFile) Allocate(_, _ int64) error { return nil }
