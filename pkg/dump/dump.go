// Package dump prints the files of a segment for people who debug: the batches
// and records of a .log, the entries of its indexes, the producers of a
// .snapshot. It takes no lock and changes nothing, so that it reads the files
// of a running broker too, and it holds one batch at most, however large the file.
//
// What is broken is told where it is met, in a line that begins with "!", and
// the rest of the file goes on after it.
package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// snapshotSuffix is that of the producer snapshots that the log writes.
const snapshotSuffix = ".snapshot"

// DefaultFieldBytes is how much of a key or a value is shown if nothing else is asked for.
const DefaultFieldBytes = 100

// Options say what is printed.
type Options struct {
	Records    bool // the records of each batch too
	FieldBytes int  // how many bytes of a key, a value or a header are shown at most
}

// ErrKind is wrapped by the error for a file that no segment has.
var ErrKind = errors.New("not a file of a segment")

// kinds are the files that are understood, by suffix.
var kinds = map[string]func(*printer, *source, int64) error{
	segment.LogSuffix:       (*printer).log,
	segment.IndexSuffix:     (*printer).offsets,
	segment.TimeIndexSuffix: (*printer).times,
	segment.TxnIndexSuffix:  (*printer).transactions,
	snapshotSuffix:          (*printer).snapshot,
}

// File prints one file, and returns how many faults it told of. The error is
// that of the disk or of w, or wraps ErrKind, and is one line.
func File(w io.Writer, fsys vfs.FS, name string, o Options) (faults int, err error) {
	printFile, base, err := kindOf(name)
	if err != nil {
		return 0, err
	}
	src, err := open(fsys, name)
	if err != nil {
		return 0, err
	}
	defer src.close()
	p := &printer{w: bufio.NewWriterSize(w, 64<<10), fs: fsys, o: o}
	p.linef("%s: %d bytes", name, src.size)
	err = printFile(p, src, base)
	return p.faults, errors.Join(err, p.w.Flush())
}

// kindOf tells by the name how a file is printed, and its base offset.
func kindOf(name string) (printFile func(*printer, *source, int64) error, base int64, _ error) {
	file := filepath.Base(name)
	digits, suffix, _ := strings.Cut(file, ".")
	printFile, ok := kinds["."+suffix]
	if ok && len(digits) == 20 {
		if base, err := strconv.ParseUint(digits, 10, 63); err == nil { // no sign
			return printFile, int64(base), nil
		}
	}
	return nil, 0, fmt.Errorf("%s: %w: they are called by 20 digits and .log, .index, .timeindex, .txnindex or .snapshot", name, ErrKind)
}

// A printer is the output for one file. Errors of writing come back from its Flush.
type printer struct {
	w      *bufio.Writer
	fs     vfs.FS
	o      Options
	faults int
	field  []byte // scratch
}

func (p *printer) linef(format string, args ...any) {
	fmt.Fprintf(p.w, format, args...)
	_ = p.w.WriteByte('\n') // a bufio.Writer keeps its error
}

// faultf tells of something broken.
func (p *printer) faultf(format string, args ...any) {
	p.faults++
	p.linef("! "+format, args...)
}

// endf is the last line of a file: what was found, and whether all is well.
func (p *printer) endf(format string, args ...any) {
	found := fmt.Sprintf(format, args...)
	switch p.faults {
	case 0:
		p.linef("%s, no fault", found)
	case 1:
		p.linef("%s, 1 fault", found)
	default:
		p.linef("%s, %d faults", found, p.faults)
	}
}

// readOnly is all that this package does with a file.
const readOnly = os.O_RDONLY

// counted is a number with its noun.
func counted(n int64, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return strconv.FormatInt(n, 10) + " " + noun + "es"
	case strings.HasSuffix(noun, "y"):
		return strconv.FormatInt(n, 10) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

// at is a timestamp (ms) as people read it; "-" for none.
func at(ms int64) string {
	switch {
	case ms == -1:
		return "-"
	case ms < leastYear || ms > mostYear:
		return strconv.FormatInt(ms, 10) + " ms" // no year that anybody writes with four digits
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// The milliseconds of the years 0 to 9999.
const (
	leastYear = -62167219200000
	mostYear  = 253402300799999
)
