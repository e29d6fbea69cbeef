package commitlog

import (
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// namesFS is the disk of one log. A sync of its directory that fails is the answer to all that come later: names that were made before
// may be dropped, and a later one that succeeds does not bring them back (ST-61). Flushes, rolls, the removal of segments
// and compaction sync it without knowing of each other, so that none of them may succeed on what another has lost.
type namesFS struct {
	vfs.FS
	dir string

	mu   sync.Mutex // held over the sync, so that no other begins before its error is known; a leaf but for the disk
	lost error
}

// SyncDir makes the names in a directory durable.
func (f *namesFS) SyncDir(name string) error {
	if name != f.dir {
		return f.FS.SyncDir(name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		f.lost = f.FS.SyncDir(name)
	}
	return f.lost
}

// failed is the error of the sync that has failed, if one has.
func (f *namesFS) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}
