// Package dumplog lets Apache Kafka's own kafka-dump-log read the files that a broker wrote: an independent reader of the format.
package dumplog

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
)

// Report is what the tool said about a set of files.
type Report struct {
	Files   int            // "Dumping ..."
	Sane    int            // index files that passed the sanity check, or are empty
	Batches map[string]int // by codec
	Counted int            // sum of the batches' own record counts
	Records int            // records that deep iteration found, markers among them
	Markers int            // those that commit or abort
	Aborted int            // entries of transaction indexes
	Trouble []string       // every line that is not known to be harmless
}

// Mode is what the tool is asked to do.
type Mode []string

// The ways the files are checked. DeepIteration is for .log files, SanityCheck and VerifyIndex for .index and .timeindex, Print for .txnindex.
var (
	DeepIteration = Mode{"--deep-iteration"}
	SanityCheck   = Mode{"--index-sanity-check"} // the check that Kafka makes at its start
	VerifyIndex   = Mode{"--verify-index-only"}  // every entry against the batches of the log
	Print         = Mode{}
)

// Dump runs the tool over files. What it complains about is in the report; an error means that it did not run.
func Dump(ctx context.Context, mode Mode, files []string) (Report, error) {
	if len(files) == 0 {
		return Report{}, fmt.Errorf("no files to dump")
	}
	out, err := kafka.Tool(ctx, kafka.DumpLogSegments, append([]string{"--files", strings.Join(files, ",")}, mode...)...)
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	return parse(out, err)
}

var (
	dumping  = regexp.MustCompile(`^Dumping (\S+)$`)
	starting = regexp.MustCompile(`^Log starting offset: (\d+)$`)
	sane     = regexp.MustCompile(`^\S+ (passed sanity check\.|is empty\.)$`)
	batch    = regexp.MustCompile(`^baseOffset: \d+ lastOffset: \d+ count: (\d+) .* position: \d+ CreateTime: \d+ size: \d+ magic: 2 compresscodec: (\w+) crc: \d+ isvalid: true$`)
	record   = regexp.MustCompile(`^\| offset: \d+ CreateTime: \d+ keySize: -?\d+ valueSize: -?\d+ sequence: -?\d+ headerKeys: \[.*\]$`)
	marker   = regexp.MustCompile(`^\| offset: \d+ CreateTime: \d+ keySize: 4 valueSize: 6 sequence: -1 headerKeys: \[\] endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: \d+$`)
	aborted  = regexp.MustCompile(`^version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+$`)
	// The tool starts every file at offset -1, so the first record of every segment but the first is "not consecutive" for it, in a segment of
	// Apache Kafka as well. Only that one pair is passed over, and only for a segment that starts there.
	nonConsecutive = regexp.MustCompile(`^Non-consecutive offsets in (\S+)$`)
	followed       = regexp.MustCompile(`^  (-?\d+) is followed by (\d+)$`)
)

// parse knows what a perfect file prints; everything else is trouble, so that no complaint is missed for its wording.
func parse(out kafka.Output, exit error) (Report, error) {
	r := Report{Batches: map[string]int{}}
	if exit != nil {
		r.Trouble = append(r.Trouble, exit.Error())
	}
	scan := bufio.NewScanner(strings.NewReader(out.Stdout))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		line := scan.Text()
		switch {
		case dumping.MatchString(line):
			r.Files++
		case starting.MatchString(line):
		case sane.MatchString(line):
			r.Sane++
		case record.MatchString(line):
			r.Records++
		case marker.MatchString(line):
			r.Records++
			r.Markers++
		case aborted.MatchString(line):
			r.Aborted++
		case batch.MatchString(line):
			m := batch.FindStringSubmatch(line)
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return r, err
			}
			r.Counted += n
			r.Batches[m[2]]++
		default:
			r.Trouble = append(r.Trouble, line)
		}
	}
	r.stderr(out.Stderr)
	return r, scan.Err()
}

func (r *Report) stderr(text string) {
	base := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := nonConsecutive.FindStringSubmatch(line); m != nil {
			base = strings.TrimLeft(strings.TrimSuffix(filepath.Base(m[1]), ".log"), "0")
			continue
		}
		if m := followed.FindStringSubmatch(line); m != nil && m[1] == "-1" && m[2] == base {
			continue
		}
		r.Trouble = append(r.Trouble, line)
	}
}
