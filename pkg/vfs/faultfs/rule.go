package faultfs

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A Rule says which operations fail, and how. The zero Rule fails the next
// operation, whatever it is, with EIO.
type Rule struct {
	// Kinds are the operations that match, 0 for all.
	Kinds vfs.Kind
	// Name is a pattern of filepath.Match for the end of the path: "*.log"
	// matches the last element, "demo-0/*.log" the last two. "" matches all.
	// A Rename matches by either name.
	Name string
	// Nth is the first matching operation to fail, counted from 1 when the
	// rule is made. 0 is 1.
	Nth int
	// Times is how many fail from there on: 0 is one, a negative number all.
	Times int
	// Err is the error, which is wrapped in an *fs.PathError. Nil is EIO.
	Err error
	// Short is how many bytes a failing WriteAt writes before it fails.
	Short int
	// Happens has the operation done although it reports the error: an error
	// does not prove that nothing has happened.
	Happens bool
	// Then is called with the wrapped file system's file after a failed
	// operation of a file, as crashfs.DropUnsynced after a Sync.
	Then func(inner vfs.File)
	// ThenDir is called with the wrapped file system after a failed SyncDir, as
	// crashfs.DropUnsyncedNames.
	ThenDir func(inner vfs.FS, dir string)
}

// A Fault is a Rule in force.
type Fault struct {
	disk    *FS
	rule    Rule
	matched int // guarded by disk.mu, as all below
	hits    int
	last    vfs.Op
}

// Fail puts a rule in force. Of several that match one operation, each counts
// it, and the first of those that are due fails it.
func (d *FS) Fail(r Rule) *Fault {
	if _, err := filepath.Match(r.Name, ""); err != nil {
		panic("faultfs: " + r.Name + ": " + err.Error())
	}
	r.Nth = max(r.Nth, 1)
	if r.Times == 0 {
		r.Times = 1
	}
	if r.Err == nil {
		r.Err = syscall.EIO
	}
	f := &Fault{disk: d, rule: r}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = append(d.rules, f)
	return f
}

// Hits is the number of operations that the rule has failed.
func (f *Fault) Hits() int {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.hits
}

// Last is the last operation that the rule has failed.
func (f *Fault) Last() vfs.Op {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.last
}

// Remove ends the rule.
func (f *Fault) Remove() {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.rules = slices.DeleteFunc(f.disk.rules, func(g *Fault) bool { return g == f })
}

// dueLocked counts a matching operation and says whether it is to fail.
func (f *Fault) dueLocked(op vfs.Op) bool {
	r := f.rule
	if r.Kinds != 0 && r.Kinds&op.Kind == 0 || !matches(r.Name, op.Name) && (op.To == "" || !matches(r.Name, op.To)) {
		return false
	}
	f.matched++
	return f.matched >= r.Nth && (r.Times < 0 || f.matched < r.Nth+r.Times)
}

// matches compares as many last elements of name as the pattern has.
func matches(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	pattern, name = filepath.ToSlash(pattern), filepath.ToSlash(filepath.Clean(name))
	elems := strings.Split(name, "/")
	n := strings.Count(pattern, "/") + 1
	if n > len(elems) {
		return false
	}
	ok, err := filepath.Match(filepath.FromSlash(pattern), filepath.Join(elems[len(elems)-n:]...))
	return ok && err == nil // Fail has checked the pattern
}
