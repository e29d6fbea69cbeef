package crashfs

import (
	"io"
	"io/fs"
	"os"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Lock is vfs.FS.
func (d *FS) Lock(name string) (io.Closer, error) {
	node, err := d.open(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.locks[node] {
			err = vfs.ErrLocked
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	d.locks[node] = true
	return &heldLock{disk: d, node: node}, nil
}

// A heldLock is released by Close, once.
type heldLock struct {
	disk *FS
	node *inode // nil once closed
}

func (l *heldLock) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.node == nil {
		return fs.ErrClosed
	}
	delete(l.disk.locks, l.node)
	l.node = nil
	return nil
}
