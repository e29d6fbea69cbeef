package crashfs

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// An inode is a file or a directory, whatever its names are.
type inode struct {
	mode    fs.FileMode
	modTime time.Time
	file    *content // nil for a directory
	dir     *names   // nil for a file
}

func newFile(mode fs.FileMode) *inode {
	return &inode{mode: mode, modTime: time.Now(), file: &content{}}
}

func newDir(mode fs.FileMode) *inode {
	return &inode{mode: mode, modTime: time.Now(), dir: &names{
		current: map[string]*inode{}, durable: map[string]*inode{},
	}}
}

// names is the content of a directory.
type names struct {
	current map[string]*inode // what a reader sees
	durable map[string]*inode // as of the last SyncDir
	pending []change          // what was done since, in order
}

// A change is one operation on the names of one directory. A rename between
// two directories is a change of each: nothing holds them together.
type change struct {
	name string
	node *inode // what name is from now on; nil if it is removed
	from string // in a rename inside the directory: the old name, else ""
}

// do makes a change, which the next sync makes durable.
func (n *names) do(c change) {
	c.apply(n.current, kept)
	n.pending = append(n.pending, c)
}

// sync makes the names durable.
func (n *names) sync() {
	for _, c := range n.pending {
		c.apply(n.durable, kept)
	}
	n.pending = nil
}

// apply does to a directory what is left of the change.
func (c change) apply(dir map[string]*inode, o outcome) {
	switch {
	case o == lost:
	case c.node == nil:
		delete(dir, c.name)
	default:
		// If the removal of another file of the old name was lost, that file
		// is still there under it.
		if c.from != "" && o != linked && dir[c.from] == c.node {
			delete(dir, c.from)
		}
		dir[c.name] = c.node
	}
}

// settle turns the directory into what a power cut leaves of it, and so with
// everything that can be reached from it. The order is fixed, so that a seed
// gives the same disk each time.
func (node *inode) settle(s survivor, seen map[*inode]bool) {
	seen[node] = true
	if node.file != nil {
		node.file.settle(s.fate())
		return
	}
	f := s.fate()
	for _, c := range node.dir.pending {
		c.apply(node.dir.durable, f.change(c))
	}
	node.dir.current = maps.Clone(node.dir.durable)
	node.dir.pending = nil
	for _, name := range sortedKeys(node.dir.current) {
		child := node.dir.current[name]
		if !seen[child] {
			child.settle(s, seen)
			continue
		}
		if child.dir != nil { // a directory never has two names
			delete(node.dir.current, name)
			delete(node.dir.durable, name)
		}
	}
}

// clone copies an inode and all that can be reached from it, once each.
func (node *inode) clone(copies map[*inode]*inode) *inode {
	if node == nil {
		return nil
	}
	if c, ok := copies[node]; ok {
		return c
	}
	c := &inode{mode: node.mode, modTime: node.modTime}
	copies[node] = c
	if node.file != nil {
		c.file = node.file.clone()
		return c
	}
	c.dir = &names{
		current: cloneMap(node.dir.current),
		durable: cloneMap(node.dir.durable),
		pending: slices.Clone(node.dir.pending),
	}
	for name, child := range c.dir.current {
		c.dir.current[name] = child.clone(copies)
	}
	for name, child := range c.dir.durable {
		c.dir.durable[name] = child.clone(copies)
	}
	for i := range c.dir.pending {
		c.dir.pending[i].node = c.dir.pending[i].node.clone(copies)
	}
	return c
}

// cloneMap is maps.Clone, but for nil an empty map.
func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
