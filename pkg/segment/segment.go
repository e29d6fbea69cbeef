// Package segment is one segment of a partition's log: the .log file, which is
// the truth, and the indexes beside it, which can be rebuilt from it. The
// formats and the crash points are in FORMAT.md.
package segment

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Suffixes of a segment's files. What stands before them is the base offset
// in 20 digits.
const (
	LogSuffix       = ".log"
	IndexSuffix     = ".index"
	TimeIndexSuffix = ".timeindex"
	TxnIndexSuffix  = ".txnindex"
)

var (
	// ErrTorn is wrapped by the error of an Append that failed in the middle
	// and could not be cut back, and by those of all later ones (ST-62).
	ErrTorn = errors.New("the log file ends in a batch that could not be cut off")
	// ErrSync is wrapped by the error of a Sync that failed: what of the file
	// is durable is no longer known, and trying again proves nothing (ST-61).
	ErrSync = errors.New("sync failed")
	// ErrSealed is returned by an Append to a segment that takes no more.
	ErrSealed = errors.New("the segment is sealed")
)

// defaultInterval is index.interval.bytes where nothing says otherwise.
const defaultInterval = 4096

// Options are what the segments of a log have in common. They may not change
// while one of the segments is in use.
type Options struct {
	FS     vfs.FS
	Dir    string       // the partition's directory, which exists
	Logger *slog.Logger // nil: nothing is logged
	// Files bounds the descriptors of sealed segments (ST-8); shared by all logs.
	Files *Files
	// IndexInterval is index.interval.bytes for indexes that are rebuilt. 0 is 4096.
	IndexInterval int
}

func (o *Options) log() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

func (o *Options) interval() int {
	if o.IndexInterval == 0 {
		return defaultInterval
	}
	return o.IndexInterval
}

// FileName is the name of a segment's file, without the directory.
func FileName(base int64, suffix string) string { return fmt.Sprintf("%020d%s", base, suffix) }

func (o *Options) path(base int64, suffix string) string {
	return filepath.Join(o.Dir, FileName(base, suffix))
}

// A Segment is one .log file with its indexes. Append, Seal and Close are
// called by one goroutine at a time (the log's mutex); everything else is safe
// beside them and beside itself.
type Segment struct {
	opts    *Options
	base    int64
	logFile *handle

	size   atomic.Int64 // what readers may see; moves after the write
	first  atomic.Int64 // FirstTimestamp, or unknown
	sealed atomic.Bool
	frozen bool // nothing of it is written: its indexes stay in memory

	// Of the one goroutine that appends.
	active    vfs.File // the log, while it is not sealed
	next      int64    // the least base offset that Append takes
	allocated int64    // the file has blocks up to here
	torn      error    // sticky

	indexMu  sync.Mutex // held over writes to the index files; before mu
	repaired bool       // a wrong index was found at a lookup and rebuilt, guarded by indexMu

	mu      sync.Mutex // a leaf, never held over the disk; guards all below
	offsets index
	times   index
	txns    txnIndex
	indexed int64 // position of the batch of the last offset entry; 0 if there is none
	largest entry // largest timestamp and relative last offset of the first batch that has it
	recent  *recent
}

// unknown is a FirstTimestamp that has not been looked up.
const unknown = math.MinInt64

func newSegment(o *Options, base int64, logFlag int) *Segment {
	s := &Segment{
		opts:    o,
		base:    base,
		next:    base,
		logFile: newHandle(o, o.path(base, LogSuffix), logFlag),
		offsets: newIndex(o, o.path(base, IndexSuffix), offsetEntry),
		times:   newIndex(o, o.path(base, TimeIndexSuffix), timeEntry),
		txns:    txnIndex{file: newHandle(o, o.path(base, TxnIndexSuffix), readWrite)},
		largest: entry{record.NoTimestamp, 0},
	}
	s.first.Store(unknown)
	return s
}

// Create makes the segment's .log file (it must not exist) as the active one.
// The name is durable once the caller has synced the directory. The index
// files are made when they are first written.
func Create(o *Options, base int64) (*Segment, error) {
	s := newSegment(o, base, readWrite)
	file, err := o.FS.OpenFile(s.logFile.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return nil, err
	}
	s.activate(file)
	s.txns.known = true
	return s, nil
}

// activate makes the segment take appends; its file stays open until it is sealed.
func (s *Segment) activate(file vfs.File) {
	s.logFile.adopt(file)
	s.active = file
	s.recent = new(recent)
}

// Base is the offset that the segment's name says.
func (s *Segment) Base() int64 { return s.base }

// Size is the length of the log file that readers may see, in bytes.
func (s *Segment) Size() int64 { return s.size.Load() }

// fits says whether a relative offset or a position fits an index entry.
func fits(n int64) bool { return n >= 0 && n <= math.MaxInt32 }

// IndexFull says whether the indexes can't take an entry for a batch that ends
// in this offset: the offset is too far from the base, or the file too long,
// for 32 bits (ST-6). The log rolls then.
func (s *Segment) IndexFull(lastOffset int64) bool {
	return !fits(lastOffset-s.base) || !fits(s.Size())
}

// FirstTimestamp is the max timestamp of the first batch (ms; what Kafka rolls
// by), or NoTimestamp if there is none or it can't be read.
func (s *Segment) FirstTimestamp() int64 {
	if ts := s.first.Load(); ts != unknown {
		return ts
	}
	ts := record.NoTimestamp
	if s.Size() == 0 {
		return ts
	}
	err := s.Batches(0, func(_ int64, h record.Batch) bool {
		ts = h.MaxTimestamp()
		return false
	})
	if err != nil {
		s.opts.log().Error("the first batch of a segment can't be read", "file", s.logFile.name, "error", err)
		return record.NoTimestamp
	}
	s.first.Store(ts)
	return ts
}

// LargestTimestamp is the largest timestamp (ms) and the last offset of the
// batch that first had it; NoTimestamp and the base offset if no batch has one.
// It reads nothing.
func (s *Segment) LargestTimestamp() (ts, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.largest.key, s.base + s.largest.value
}

// Close closes the files; regions still out keep theirs until released. It
// gives back what was allocated ahead but writes nothing: WriteIndexes is for that. A closed
// segment's calls fail with fs.ErrClosed.
func (s *Segment) Close() error {
	var errs []error
	if s.active != nil {
		errs = append(errs, s.trim())
	}
	errs = append(errs, s.offsets.file.shut(), s.times.file.shut(), s.txns.file.shut(), s.logFile.shut())
	s.unpin()
	return errors.Join(errs...)
}

// unpin lets the active segment's own hold of its log file go.
func (s *Segment) unpin() {
	if s.active != nil {
		s.active = nil
		s.logFile.release()
	}
}

// Remove closes the segment for new readers and unlinks its files, the log
// last, so that no index is ever without its log. Regions that are out stay
// readable; where the system does not unlink an open file, that file's name
// goes with its last region. The removal is durable once the caller has synced the directory.
func (s *Segment) Remove() error {
	err := s.offsets.file.remove()
	if err == nil {
		err = s.times.file.remove()
	}
	if err == nil {
		err = s.txns.file.remove()
	}
	if err == nil {
		err = s.logFile.remove()
	}
	s.unpin()
	return err
}

// syncFile makes a file durable; the error wraps ErrSync.
func syncFile(f vfs.File) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrSync, err)
	}
	return nil
}

var _ io.Closer = (*Segment)(nil)
