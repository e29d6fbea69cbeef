package crashfs

import (
	"path/filepath"
	"strings"
	"syscall"
)

// lookupLocked returns what a name names.
func (d *FS) lookupLocked(name string) (*inode, error) {
	if err := d.powerLocked(); err != nil {
		return nil, err
	}
	_, _, node, err := d.findLocked(name)
	if err == nil && node == nil {
		err = syscall.ENOENT
	}
	return node, err
}

// findLocked walks to a name. It returns the directory that the name is in
// (nil for the root), its last element, and what it names, nil if nothing.
func (d *FS) findLocked(name string) (parent *names, base string, node *inode, err error) {
	if name == "" {
		return nil, "", nil, syscall.ENOENT
	}
	node = d.root
	for elem := range strings.SplitSeq(clean(name), "/") {
		if elem == "" {
			continue
		}
		switch {
		case node == nil:
			return nil, "", nil, syscall.ENOENT
		case node.dir == nil:
			return nil, "", nil, syscall.ENOTDIR
		}
		parent, base, node = node.dir, elem, node.dir.current[elem]
	}
	return parent, base, node, nil
}

// clean is the path from the root, with slashes on every system.
func clean(name string) string {
	name = strings.TrimPrefix(name, filepath.VolumeName(name))
	return filepath.ToSlash(filepath.Clean(string(filepath.Separator) + name))
}
