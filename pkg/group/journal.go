package group

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// journalName is the file of a journal, in the data directory.
const journalName = "groups.journal"

const (
	// reuseAfter is from which size on a journal begins anew at its front, if meta.db has all that is in it.
	reuseAfter = 64 << 10
	// rewriteAfter is from which size on what meta.db has is left out, if it does not have all.
	rewriteAfter = 1 << 20
)

// A journal holds the changes of memberships that meta.db, which is written
// behind, may not have yet. It is written before what relies on a change is
// answered, and never synced: the page cache outlives a kill of the broker, so
// that no kill takes back what a client was told (GR-6), as with Kafka's log. What a power
// cut leaves of it is told from what is newer by the checksums and versions of its entries (see parseJournal).
//
// Who waits for an entry and finds no write under way makes one, of all that has
// queued. No lock is held over it.
type journal struct {
	fs   vfs.FS
	name string
	log  *slog.Logger
	base uint64 // below the versions of this start

	written atomic.Uint64 // entries up to this version are in the file, or could not be written

	mu      sync.Mutex // guards what follows; a leaf
	done    sync.Cond  // of mu: a write has ended
	version uint64     // of the last entry
	closed  bool       // nothing is written any more
	queue   []metastore.Group
	writing bool
	pending map[string]unsettled // by group: the last entry, until meta.db has it

	// Of who has set writing.
	file   vfs.File // nil: not open
	there  bool     // there may be a file of the name
	size   int64    // where the next entry goes
	look   int64    // from which size on it is seen to that the file gets shorter
	lacks  bool     // the file lacks entries: a write failed
	failed bool     // that was told
	buf    []byte
}

// An unsettled state is one that meta.db may not have.
type unsettled struct {
	metastore.Group
	dropping bool // its group is being deleted
}

// newJournal makes a journal for this start. No file is touched.
func newJournal(fsys vfs.FS, dir string, epoch int32, log *slog.Logger) *journal {
	base := baseVersion(epoch)
	j := &journal{fs: fsys, name: filepath.Join(dir, journalName), log: log, base: base, version: base,
		pending: map[string]unsettled{}, look: reuseAfter}
	j.written.Store(base)
	j.done.L = &j.mu
	return j
}

// baseVersion is below all versions of a start, and above those of the starts before it.
func baseVersion(epoch int32) uint64 { return uint64(epoch) << 32 }

// add queues a state of a group and gives it its version. The caller holds the
// group's lock, and has await called before anybody hears of the state.
func (j *journal) add(g metastore.Group) metastore.Group {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.version++
	g.Version = j.version
	j.queue = append(j.queue, g)
	j.pending[g.Name] = unsettled{Group: g}
	return g
}

// await returns once an entry is written. If that fails it returns as well:
// groups go on.
func (j *journal) await(version uint64) {
	if j.written.Load() >= version {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.written.Load() < version {
		if j.writing {
			j.done.Wait()
			continue
		}
		j.writeLocked()
	}
}

// writeLocked writes what is queued. The lock is not held meanwhile.
func (j *journal) writeLocked() {
	queue, last, written := j.queue, j.version, j.written.Load()
	j.queue, j.writing = nil, true
	closed := j.closed
	j.mu.Unlock()
	if !closed {
		j.tell(j.write(queue, written))
	}
	j.mu.Lock()
	j.writing = false
	j.written.Store(last)
	j.done.Broadcast()
}

// write appends entries, or replaces the file by a shorter one.
func (j *journal) write(entries []metastore.Group, written uint64) (err error) {
	if j.lacks || j.size >= j.look {
		all, older := j.unsettled(written)
		switch {
		case j.lacks, older && j.size >= rewriteAfter:
			return j.replace(all)
		case older:
			j.look = j.size + reuseAfter
		default: // nothing that is overwritten is needed
			if j.size >= rewriteAfter {
				_ = j.file.Truncate(0) // for the room alone
			}
			j.size, j.look = 0, reuseAfter
		}
	}
	defer func() { j.lacks = err != nil }()
	if j.file == nil {
		// What an earlier start has left was read by now, and is in meta.db.
		j.there = true
		if j.file, err = j.fs.OpenFile(j.name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
			return err
		}
	}
	j.buf = j.buf[:0]
	for _, g := range entries {
		j.buf = appendEntry(j.buf, g)
	}
	n, err := j.file.WriteAt(j.buf, j.size)
	if err == nil {
		j.size += int64(n)
	}
	if cap(j.buf) > reuseAfter {
		j.buf = nil
	}
	return err
}

// unsettled are the states that meta.db may not have; older says that some are in the file already.
func (j *journal) unsettled(written uint64) (all []metastore.Group, older bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, u := range j.pending {
		all = append(all, u.Group)
		older = older || u.Version <= written
	}
	return all, older
}

// replace makes a new file of these entries. A kill finds it, or the one before.
func (j *journal) replace(entries []metastore.Group) (err error) {
	defer func() { j.lacks = err != nil }()
	if j.file != nil {
		_ = j.file.Close() // it is not written any more; on Windows an open file can't be replaced
		j.file = nil
	}
	var b []byte
	for _, g := range entries {
		b = appendEntry(b, g)
	}
	j.there = true
	temp := j.name + ".tmp"
	if err := j.create(temp, b); err != nil {
		_ = j.fs.Remove(temp) // the first error is the one to tell
		return err
	}
	if err := j.fs.Rename(temp, j.name); err != nil {
		_ = j.fs.Remove(temp)
		return err
	}
	if j.file, err = j.fs.OpenFile(j.name, os.O_RDWR, 0); err != nil {
		return err
	}
	j.size = int64(len(b))
	j.look = max(2*j.size, reuseAfter)
	return nil
}

func (j *journal) create(name string, b []byte) error {
	f, err := j.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

// tell logs, once, that the journal can't be written, and once that it can again.
func (j *journal) tell(err error) {
	if was := j.failed; was == (err != nil) {
		return
	}
	if j.failed = err != nil; j.failed {
		j.log.Warn("the journal of groups can't be written; groups go on, and a kill may take back what they were last", "error", err)
		return
	}
	j.log.Info("the journal of groups is written again")
}

// settled says that meta.db has a state.
func (j *journal) settled(name string, version uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if u, ok := j.pending[name]; ok && u.Version <= version {
		delete(j.pending, name)
	}
}

// dropping says that a group is being deleted.
func (j *journal) dropping(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if u, ok := j.pending[name]; ok {
		u.dropping = true
		j.pending[name] = u
	}
}

// drop is what a transaction that deletes a group does besides: no entry up to
// its last version counts from then on, or a power cut could bring the group back. What
// the journal alone has of other groups is therefore put into their rows.
func (j *journal) drop(tx *metastore.Tx, version uint64) error {
	if version <= j.base {
		return nil // it did not change since the start
	}
	j.mu.Lock()
	pending := maps.Clone(j.pending)
	j.mu.Unlock()
	for _, u := range pending {
		if u.dropping {
			continue
		}
		if err := tx.PutGroup(u.Group); err != nil {
			return err
		}
	}
	return tx.RaiseGroupsFloor(version)
}

// read returns what an earlier start has left, in the order in which it was written.
func (j *journal) read() ([]metastore.Group, error) {
	b, err := vfs.ReadFile(j.fs, j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j.there = true
	return slices.Collect(parseJournal(b)), err
}

// begin ends what an earlier start has left: meta.db has it.
func (j *journal) begin() {
	if j.there {
		// Its removal need not be durable: no entry that comes back counts (GroupsFloor).
		j.there = j.fs.Remove(j.name) != nil
	}
}

// keep is for states of an earlier start that could not be put into meta.db: they are written again with the next entry.
func (j *journal) keep(states map[string]metastore.Group) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, g := range states {
		j.pending[name] = unsettled{Group: g}
	}
	j.lacks = len(states) > 0
}

// close ends the journal. The file goes, unless it has what meta.db has not.
func (j *journal) close(needed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing || j.written.Load() < j.version {
		if j.writing {
			j.done.Wait()
		} else {
			j.writeLocked()
		}
	}
	if j.closed {
		return
	}
	j.closed = true
	if j.file != nil {
		_ = j.file.Close() // every write has told its own error
	}
	if j.there && !needed {
		_ = j.fs.Remove(j.name) // see begin
	}
}
