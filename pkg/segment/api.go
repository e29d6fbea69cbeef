// Package segment is one segment of a partition's log: the .log file, which is
// the truth, and the indexes beside it, which can be rebuilt from it. The
// formats and the crash points are in FORMAT.md.
package segment

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import (
	"io"
	"log/slog"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Options are what the segments of a log have in common.
type Options struct {
	FS     vfs.FS
	Dir    string // the partition's directory, which exists
	Logger *slog.Logger
	// Files bounds the descriptors of sealed segments (ST-8); shared by all logs.
	Files *Files
}

// Files is a bounded cache of open files of sealed segments.
type Files struct{ _ int }

// NewFiles keeps up to limit files open besides those in use.
func NewFiles(limit int) *Files { panic("not built") }

// A Segment is one .log file with its indexes. Append, Flush, Seal and
// Truncate are called by one goroutine at a time (the log's mutex); everything
// else is safe beside them.
type Segment struct{ _ int }

// Create makes the segment's .log file (it must not exist) as the active one.
// The name is durable once the caller has synced the directory.
func Create(o *Options, base int64) (*Segment, error) { panic("not built") }

// Open opens a sealed segment without reading its log; indexes that are
// missing, truncated or do not match are rebuilt, and that is logged (ST-8).
func Open(o *Options, base int64) (*Segment, error) { panic("not built") }

// Recovered is what recovery has found in a segment's log.
type Recovered struct {
	Next    int64  // the offset after the last good batch
	Cut     int64  // bytes cut off the end
	Reason  string // why, "" if nothing was cut
	Scanned int64  // bytes read
}

// Recover opens the newest segment. With clean it trusts the file's length
// and the indexes; otherwise it checks every batch with its CRC, cuts what is
// torn (ST-54) and rebuilds the indexes. Every good batch at or after replay is shown
// to visit (header and body when verify is on; header only otherwise), to rebuild the producers' state.
func Recover(o *Options, base int64, clean bool, replay int64, visit func(h record.Batch)) (*Segment, Recovered, error) {
	panic("not built")
}

// Base is the offset that the segment's name says.
func (s *Segment) Base() int64 { panic("not built") }

// Size is the length of the log file that readers may see, in bytes.
func (s *Segment) Size() int64 { panic("not built") }

// Append writes one stamped batch at the end, with one WriteAt. indexInterval
// is index.interval.bytes. If the write fails the file is cut back, and the
// error is the write's; if that fails too it is ErrTorn, and the segment takes no more.
func (s *Segment) Append(b record.Batch, v record.Verdict, indexInterval int) error {
	panic("not built")
}

// Flush makes the log durable (fdatasync). It may run beside Append and
// covers what was appended before it began.
func (s *Segment) Flush() error { panic("not built") }

// WriteIndexes writes the index entries that are still only in memory; sync makes them durable too.
func (s *Segment) WriteIndexes(sync bool) error { panic("not built") }

// Seal trims what was allocated ahead, writes the indexes (with .txnindex, so
// that missing and empty differ) and makes all durable. The segment takes no more after it.
func (s *Segment) Seal() error { panic("not built") }

// A Region is bytes of a log file that stay readable until Release.
type Region struct {
	File   vfs.File
	Offset int64
	Length int
	// Release lets the file go; it must be called once.
	Release func()
}

// Read finds the batch that holds offset (or the next one after a gap) and
// returns a region from it on: at most maxBytes of it, but with wholeFirst at
// least the first batch entire; never past limit, a file position on a batch
// boundary (-1: Size). A region may end within a batch. Length 0: nothing there, Release is nil.
func (s *Segment) Read(offset int64, maxBytes int, wholeFirst bool, limit int64) (Region, error) {
	panic("not built")
}

// Position is the file position of the first batch whose last offset is at
// or after offset; Size if there is none.
func (s *Segment) Position(offset int64) (int64, error) { panic("not built") }

// Batches walks the batch headers from a file position on, until yield is
// false. A batch that can't be walked ends it with an error (CORRUPT_MESSAGE).
func (s *Segment) Batches(pos int64, yield func(pos int64, header record.Batch) bool) error {
	panic("not built")
}

// ReadBatch reads the whole batch at a file position.
func (s *Segment) ReadBatch(pos int64) (record.Batch, error) { panic("not built") }

// FirstTimestamp is the max timestamp of the first batch (Kafka's rolling base), or NoTimestamp.
func (s *Segment) FirstTimestamp() int64 { panic("not built") }

// LargestTimestamp is the largest timestamp and the last offset of the batch that first had it.
func (s *Segment) LargestTimestamp() (ts, offset int64) { panic("not built") }

// TimePosition is a position at or before the first batch whose max timestamp is at least ts.
func (s *Segment) TimePosition(ts int64) (int64, error) { panic("not built") }

// IndexFull says whether the index can't take an entry for this offset (roll, ST-6).
func (s *Segment) IndexFull(lastOffset int64) bool { panic("not built") }

// Remove closes the segment for new readers and unlinks its files once the last region is released.
func (s *Segment) Remove() error { panic("not built") }

// Close closes the files; regions still out keep theirs until released.
func (s *Segment) Close() error { panic("not built") }

var _ io.Closer = (*Segment)(nil)
