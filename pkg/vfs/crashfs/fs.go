package crashfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

var _ vfs.FS = (*FS)(nil)

// OpenFile is vfs.FS.
func (d *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	node, err := d.open(name, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{disk: d, node: node, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

func (d *FS) open(name string, flag int, perm fs.FileMode) (*inode, error) {
	if flag&os.O_APPEND != 0 {
		return nil, syscall.EINVAL // nothing appends: writes name their offset
	}
	changes := flag&(os.O_CREATE|os.O_TRUNC) != 0
	if changes {
		if err := d.begin(vfs.Op{Kind: vfs.OpCreate, Name: name}); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.powerLocked(); err != nil && !changes {
		return nil, err
	}
	parent, base, node, err := d.findLocked(name)
	switch {
	case err != nil:
		return nil, err
	case node == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case node == nil:
		node = newFile(perm.Perm())
		parent.do(change{name: base, node: node})
		return node, nil
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case node.file == nil:
		return nil, syscall.EISDIR
	}
	if flag&os.O_TRUNC != 0 {
		node.file.truncate(0)
		node.modTime = time.Now()
	}
	return node, nil
}

// Mkdir is vfs.FS.
func (d *FS) Mkdir(name string, perm fs.FileMode) error {
	return d.change("mkdir", vfs.Op{Kind: vfs.OpMkdir, Name: name}, func(parent *names, base string, node *inode) error {
		if node != nil {
			return syscall.EEXIST
		}
		parent.do(change{name: base, node: newDir(fs.ModeDir | perm.Perm())})
		return nil
	})
}

// Remove is vfs.FS.
func (d *FS) Remove(name string) error {
	return d.change("remove", vfs.Op{Kind: vfs.OpRemove, Name: name}, func(parent *names, base string, node *inode) error {
		switch {
		case node == nil:
			return syscall.ENOENT
		case parent == nil:
			return syscall.EINVAL // the root
		case node.dir != nil && len(node.dir.current) > 0:
			return syscall.ENOTEMPTY
		}
		parent.do(change{name: base})
		return nil
	})
}

// RemoveAll is vfs.FS. Each name is an operation of its own, as on a real
// disk: the power may go between any two.
func (d *FS) RemoveAll(name string) error {
	d.mu.RLock()
	err := d.powerLocked()
	var node *inode
	if err == nil {
		_, _, node, err = d.findLocked(name)
	}
	var children []string
	if node != nil && node.dir != nil {
		children = sortedKeys(node.dir.current)
	}
	d.mu.RUnlock()
	if err != nil {
		return &fs.PathError{Op: "removeall", Path: name, Err: err}
	}
	if node == nil {
		return nil
	}
	for _, child := range children {
		if err := d.RemoveAll(filepath.Join(name, child)); err != nil {
			return err
		}
	}
	return d.Remove(name)
}

// Rename is vfs.FS. As os.Rename it never replaces a directory.
func (d *FS) Rename(oldname, newname string) error {
	if err := d.rename(oldname, newname); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (d *FS) rename(oldname, newname string) error {
	if err := d.begin(vfs.Op{Kind: vfs.OpRename, Name: oldname, To: newname}); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	from, oldbase, node, err := d.findLocked(oldname)
	if err != nil {
		return err
	}
	to, newbase, target, err := d.findLocked(newname)
	switch {
	case err != nil:
		return err
	case node == nil:
		return syscall.ENOENT
	case from == nil || to == nil:
		return syscall.EINVAL // the root
	case target != nil && target.dir != nil:
		return syscall.EEXIST
	case target == node:
		return nil
	case target != nil && node.dir != nil:
		return syscall.ENOTDIR
	case node.dir != nil && strings.HasPrefix(clean(newname)+"/", clean(oldname)+"/"):
		return syscall.EINVAL // into itself
	}
	if from == to {
		to.do(change{name: newbase, node: node, from: oldbase})
		return nil
	}
	to.do(change{name: newbase, node: node})
	from.do(change{name: oldbase})
	return nil
}

// change does an operation on one name. parent is nil for the root.
func (d *FS) change(verb string, op vfs.Op, do func(parent *names, base string, node *inode) error) error {
	err := d.begin(op)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		var parent *names
		var base string
		var node *inode
		if parent, base, node, err = d.findLocked(op.Name); err == nil {
			err = do(parent, base, node)
		}
	}
	if err != nil {
		return &fs.PathError{Op: verb, Path: op.Name, Err: err}
	}
	return nil
}

// SyncDir is vfs.FS.
func (d *FS) SyncDir(name string) error {
	return d.change("sync", vfs.Op{Kind: vfs.OpSyncDir, Name: name}, func(_ *names, _ string, node *inode) error {
		switch {
		case node == nil:
			return syscall.ENOENT
		case node.dir == nil:
			return syscall.ENOTDIR
		}
		node.dir.sync()
		return nil
	})
}

// SetModTime is vfs.FS. It counts as a write, and a power cut does not take it back.
func (d *FS) SetModTime(name string, t time.Time) error {
	return d.change("chtimes", vfs.Op{Kind: vfs.OpWrite, Name: name}, func(_ *names, _ string, node *inode) error {
		if node == nil {
			return syscall.ENOENT
		}
		node.modTime = t
		return nil
	})
}

// Stat is vfs.FS.
func (d *FS) Stat(name string) (fs.FileInfo, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	node, err := d.lookupLocked(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return node.info(filepath.Base(name)), nil
}

// ReadDir is vfs.FS.
func (d *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	node, err := d.lookupLocked(name)
	if err == nil && node.dir == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, 0, len(node.dir.current))
	for _, base := range sortedKeys(node.dir.current) {
		entries = append(entries, fs.FileInfoToDirEntry(node.dir.current[base].info(base)))
	}
	return entries, nil
}
