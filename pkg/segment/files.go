package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Files is a bounded cache of the open files of sealed segments and of
// indexes (ST-8), shared by all logs of a broker. A file in use is never
// closed by it; one that nobody uses stays open until the limit needs its place.
type Files struct {
	limit int

	mu     sync.Mutex // a leaf: held for a few pointers, never over a system call
	idle   int
	oldest *handle
	newest *handle
}

// NewFiles keeps up to limit files open besides those in use.
func NewFiles(limit int) *Files { return &Files{limit: limit} }

// A handle is one file of a segment, open while it has users and for as long
// after as the cache has room.
type handle struct {
	files *Files
	opts  *Options
	name  string
	flag  int // os.O_RDONLY or os.O_RDWR, for opening
	// letGo is release as a value, made once: a Region carries it without an allocation.
	letGo func()

	// users counts those who hold the file. It goes from and to 0 only under
	// files.mu; between, without: that is the path of every read of an active segment.
	users atomic.Int32
	file  vfs.File // stable while users > 0; else guarded by files.mu
	// closed is set under files.mu: no more users, but those that are may go on.
	closed atomic.Bool

	// Guarded by files.mu.
	older, newer *handle
	isIdle       bool
	unlink       bool // the name goes with the last user
}

func newHandle(o *Options, name string, flag int) *handle {
	h := &handle{files: o.Files, opts: o, name: name, flag: flag}
	h.letGo = h.release
	return h
}

// adopt gives the handle a file that was opened elsewhere, with one user.
func (h *handle) adopt(f vfs.File) {
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	h.file = f
	h.users.Store(1)
}

// acquire returns the file, opened if need be; release gives it back. create
// (0 or os.O_CREATE) says what to do if there is none.
func (h *handle) acquire(create int) (vfs.File, error) {
	for n := h.users.Load(); n > 0 && !h.closed.Load(); n = h.users.Load() {
		if h.users.CompareAndSwap(n, n+1) {
			return h.file, nil
		}
	}
	if f, err := h.acquireOpen(); f != nil || err != nil {
		return f, err
	}
	opened, err := h.opts.FS.OpenFile(h.name, h.flag|create, filePerm)
	if err != nil {
		return nil, err
	}
	f, err := h.install(opened)
	if f != opened {
		// Another goroutine was faster, or the segment was closed: nothing was
		// written through this descriptor, so its close can lose nothing.
		_ = opened.Close()
	}
	return f, err
}

// acquireOpen takes the file if it is open, and fails if the handle is closed.
func (h *handle) acquireOpen() (vfs.File, error) {
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	if h.closed.Load() {
		return nil, fmt.Errorf("%s: %w", h.name, fs.ErrClosed)
	}
	if h.file == nil {
		return nil, nil
	}
	h.files.takeLocked(h)
	h.users.Add(1)
	return h.file, nil
}

func (h *handle) install(opened vfs.File) (vfs.File, error) {
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	if h.closed.Load() {
		return nil, fmt.Errorf("%s: %w", h.name, fs.ErrClosed)
	}
	if h.file == nil {
		h.file = opened
	} else {
		h.files.takeLocked(h)
	}
	h.users.Add(1)
	return h.file, nil
}

// release ends one use. Errors of closing are only logged: what had to be
// durable was synced by whoever wrote it.
func (h *handle) release() {
	for n := h.users.Load(); n > 1; n = h.users.Load() {
		if h.users.CompareAndSwap(n, n-1) {
			return
		}
	}
	if err := h.releaseLast(); err != nil {
		h.opts.log().Warn("a segment file could not be let go", "file", h.name, "error", err)
	}
}

func (h *handle) releaseLast() error {
	h.files.mu.Lock()
	if h.users.Add(-1) > 0 {
		h.files.mu.Unlock()
		return nil
	}
	var closing vfs.File
	unlink := false
	if h.closed.Load() {
		closing, h.file = h.file, nil
		unlink = h.unlink
	} else {
		closing = h.files.parkLocked(h)
	}
	h.files.mu.Unlock()
	var err error
	if closing != nil {
		err = closing.Close()
	}
	if unlink {
		err = errors.Join(err, h.unlinkName())
	}
	return err
}

// shut ends the handle for new users. The file is closed now, or by its last user.
func (h *handle) shut() error {
	_, err := h.close()
	return err
}

// close is shut, and says whether there are users left.
func (h *handle) close() (inUse bool, err error) {
	h.files.mu.Lock()
	h.closed.Store(true)
	if h.users.Load() > 0 {
		h.files.mu.Unlock()
		return true, nil
	}
	h.files.takeLocked(h)
	closing := h.file
	h.file = nil
	h.files.mu.Unlock()
	if closing == nil {
		return false, nil
	}
	return false, closing.Close()
}

// remove shuts the handle and unlinks the name: at once, or, where the
// system does not unlink an open file (Windows), with the last user. Trying at
// once first matters: later the name may be another file's, of a topic that
// was deleted and created again.
func (h *handle) remove() error {
	inUse, err := h.close()
	if err != nil {
		return err
	}
	err = h.unlinkName()
	if err == nil || !inUse {
		return err
	}
	h.files.mu.Lock()
	inUse = h.users.Load() > 0
	h.unlink = inUse
	h.files.mu.Unlock()
	if inUse {
		return nil
	}
	return h.unlinkName() // the last user has just left
}

func (h *handle) unlinkName() error { return removeIfThere(h.opts.FS, h.name) }

func removeIfThere(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// parkLocked puts a file without users among the idle, and returns the file
// that has to be closed for it, if any.
func (c *Files) parkLocked(h *handle) (closing vfs.File) {
	h.isIdle = true
	h.older, h.newer = c.newest, nil
	if c.newest != nil {
		c.newest.newer = h
	} else {
		c.oldest = h
	}
	c.newest = h
	c.idle++
	if c.idle <= c.limit {
		return nil
	}
	out := c.oldest
	c.takeLocked(out)
	closing, out.file = out.file, nil
	return closing
}

// takeLocked takes a handle from among the idle, if it is there.
func (c *Files) takeLocked(h *handle) {
	if !h.isIdle {
		return
	}
	if h.older != nil {
		h.older.newer = h.newer
	} else {
		c.oldest = h.newer
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		c.newest = h.older
	}
	h.older, h.newer, h.isIdle = nil, nil, false
	c.idle--
}

// filePerm is the mode of new files, before the umask.
const filePerm = 0o644

const (
	readOnly  = os.O_RDONLY
	readWrite = os.O_RDWR
	// createFlag makes an acquire create the file.
	createFlag = os.O_CREATE
)
