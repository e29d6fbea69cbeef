package segment

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// chunk is how much of a log is read or written at a time.
const chunk = 256 << 10

// syncEvery is how much of a new log is written at most before the disk has to have it.
const syncEvery = 8 << 20

// WholeBatches is Batches with whole batches, of a segment that does not
// change. A batch is valid until yield returns; its checksum is not looked at.
func (s *Segment) WholeBatches(yield func(pos int64, b record.Batch) bool) error {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return err
	}
	defer s.logFile.release()
	r := reader{file: file, end: s.Size()}
	r.buf = make([]byte, min(chunk, r.end))
	for pos, next := int64(0), s.base; pos < r.end; {
		if r.end-pos < record.HeaderSize {
			return corrupt(file, pos, "the file ends within its header")
		}
		if err := r.fill(record.HeaderSize); err != nil {
			return err
		}
		h := record.Batch(r.held[:record.HeaderSize])
		if why := fault(h, r.end-pos, next); why != "" {
			return corrupt(file, pos, why)
		}
		size := h.Size()
		if err := r.fill(size); err != nil {
			return err
		}
		b := record.Batch(r.held[:size:size])
		if !yield(pos, b) {
			return nil
		}
		next, pos, r.held = b.LastOffset()+1, pos+int64(size), r.held[size:]
	}
	return nil
}

// A reader reads a file from its start in large pieces.
type reader struct {
	file vfs.File
	buf  []byte
	held []byte // the end of buf: what has been read and not been used
	read int64  // bytes of the file that have been read
	end  int64
}

// fill sees to it that n bytes are held, which the file must have.
func (r *reader) fill(n int) error {
	if len(r.held) >= n {
		return nil
	}
	into := r.buf
	if n > len(into) {
		into = make([]byte, n)
	}
	had := copy(into, r.held)
	r.buf = into
	more := int(min(int64(len(into)-had), r.end-r.read))
	if err := readFull(r.file, into[had:had+more], r.read); err != nil {
		return err
	}
	r.held, r.read = into[:had+more], r.read+int64(more)
	return nil
}

// A Rewrite is another log for a sealed segment, batch by batch. As long as
// all batches are the old ones nothing is written. It is used by one goroutine.
type Rewrite struct {
	old    *Segment
	made   *Segment // what the segment is once the file has its name
	name   string
	file   vfs.File // nil: nothing has changed so far
	buf    []byte   // the end of it, not written
	ahead  int64    // bytes that were written since the last fsync
	syncs  int64
	last   record.Batch
	txns   []AbortedTxn
	synced bool
}

// Rewrite begins; suffix is what the name of the new log ends in until it takes the old one's place.
func (s *Segment) Rewrite(suffix string) *Rewrite {
	r := &Rewrite{old: s, made: newSegment(s.opts, s.base, readOnly), name: s.logFile.name + suffix}
	r.made.sealed.Store(true)
	return r
}

// Size is how long the new log is so far, in bytes.
func (r *Rewrite) Size() int64 { return r.made.Size() }

// Syncs is how many fsyncs of the log the disk was asked for before Sync.
func (r *Rewrite) Syncs() int64 { return r.syncs }

// Changed says whether the new log differs from the old one.
func (r *Rewrite) Changed() bool { return r.file != nil }

// Last is the header of the last batch; nil if there is none.
func (r *Rewrite) Last() record.Batch { return r.last }

// Change is called before the first batch that is left out or is another than in the old log. It copies what comes before
// that, perhaps all of a large log, and calls pace before each piece of it; its error ends it.
func (r *Rewrite) Change(pace func(bytes int) error) error {
	if r.file != nil {
		return nil
	}
	file, err := r.old.opts.FS.OpenFile(r.name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	r.file = file
	from, err := r.old.logFile.acquire(0)
	if err != nil {
		return err
	}
	defer r.old.logFile.release()
	buf := make([]byte, min(chunk, r.Size()))
	for pos := int64(0); pos < r.Size(); pos += chunk {
		b := buf[:min(chunk, r.Size()-pos)]
		if err := pace(len(b)); err != nil {
			return err
		}
		if err := readFull(from, b, pos); err != nil {
			return err
		}
		if err := r.writeAt(b, pos); err != nil {
			return err
		}
	}
	return nil
}

// Append adds a batch: an old one as it is, or after Change another one.
func (r *Rewrite) Append(b record.Batch) error {
	s, end := r.made, r.Size()
	if r.file != nil {
		if len(r.buf)+len(b) > chunk {
			if err := r.write(); err != nil {
				return err
			}
		}
		if len(b) > chunk {
			if err := r.writeAt(b, end); err != nil {
				return err
			}
		} else {
			r.buf = append(r.buf, b...)
		}
	}
	if end == 0 {
		s.first.Store(b.MaxTimestamp())
	}
	s.note(end, b, s.opts.interval())
	s.size.Store(end + int64(len(b)))
	r.last = append(r.last[:0], b[:record.HeaderSize]...)
	return nil
}

func (r *Rewrite) write() error {
	if len(r.buf) == 0 {
		return nil
	}
	err := r.writeAt(r.buf, r.Size()-int64(len(r.buf)))
	r.buf = r.buf[:0]
	return err
}

func (r *Rewrite) writeAt(b []byte, at int64) error {
	if err := writeFull(r.file, b, at); err != nil {
		return err
	}
	if r.ahead += int64(len(b)); r.ahead < syncEvery {
		return nil
	}
	r.ahead = 0
	r.syncs++
	// Without it Sync has the disk write all of the segment at once, and who waits for the disk meanwhile, for a batch
	// that is to be durable, waits as long. Nothing would be lost.
	return syncFile(r.file)
}

// Sync makes the new log durable, with the old one's age: a rewrite must not
// postpone retention. It holds its name no more than that of any new file.
// aborted are the transactions whose abort markers it has.
func (r *Rewrite) Sync(modified time.Time, aborted []AbortedTxn) error {
	err := r.write()
	if err == nil {
		// Without it a power cut after the rename leaves a log without its batches.
		err = syncFile(r.file)
	}
	r.synced = true
	err = errors.Join(err, r.file.Close())
	if err == nil {
		err = r.old.opts.FS.SetModTime(r.name, modified)
	}
	r.txns = aborted
	return err
}

// Discard removes what has been written. Only what was not swapped in is discarded.
func (r *Rewrite) Discard() error {
	if r.file == nil {
		return nil
	}
	var err error
	if !r.synced {
		err = r.file.Close()
	}
	return errors.Join(err, removeIfThere(r.old.opts.FS, r.name))
}

// Swap puts the new log in the place of the old one, after Sync. The old segment is closed: who
// holds a region of it reads on. What is derived from the old log goes first,
// durably: beside the new one it would be wrong. The rename is the commit. After an error the segment
// has to be opened again, whichever log it has; after one that wraps ErrSync nobody knows which one it has on the disk: OpenFrozen.
func (r *Rewrite) Swap() (*Segment, error) {
	o := r.old.opts
	if err := r.old.Close(); err != nil {
		return nil, err
	}
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix, TxnIndexSuffix} {
		if err := removeIfThere(o.FS, o.path(r.old.base, suffix)); err != nil {
			return nil, err
		}
	}
	// Without it a power cut could bring the old indexes back beside the new log.
	if err := syncDir(o); err != nil {
		return nil, err
	}
	if err := o.FS.Rename(r.name, r.old.logFile.name); err != nil {
		// It may have happened. Without it the indexes of the new log could be there beside the old one after a power cut.
		return nil, errors.Join(err, syncDir(o))
	}
	// Without it a power cut could bring this log back after the next ones are
	// rewritten: records would be there whose tombstone or abort marker is gone.
	if err := syncDir(o); err != nil {
		return nil, err
	}
	s := r.made
	s.mu.Lock()
	for _, a := range r.txns {
		s.txns.tail = appendTxn(s.txns.tail, a)
	}
	s.txns.known = true
	s.mu.Unlock()
	return s, nil
}

// Settle writes the indexes of the new segment, which has them in memory. What
// can't be written is told of and stays there; the next open makes it anew.
func (r *Rewrite) Settle() {
	r.made.SetAborted(r.txns)
	if err := r.made.WriteIndexes(true); err != nil {
		r.made.opts.log().Warn("index entries could not be written and stay in memory", "file", r.made.logFile.name, "error", err)
	}
}

func syncDir(o *Options) error {
	if err := o.FS.SyncDir(o.Dir); err != nil {
		return fmt.Errorf("%w: %w", ErrSync, err)
	}
	return nil
}
