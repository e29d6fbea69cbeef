package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/dump"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

const dumpUsage = `Usage: broker dump [--records] [--bytes N] FILE...

Prints the files of a segment: the batches of a .log, the entries of an .index, .timeindex or .txnindex, the producers of a
.snapshot. Nothing is locked or changed, and a broker may be running. What is broken is told in a line that begins with "!".
Exit codes: 0 all is well, 1 something is broken or could not be read, 2 this command line.

  --records   the records of each batch too
  --bytes N   how many bytes of a key, a value or a header are shown at most (default %d)
`

// dumpFiles prints the files that args name.
func dumpFiles(args []string, stdout, stderr io.Writer) int {
	var o dump.Options
	flags := flag.NewFlagSet("broker dump", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.Records, "records", false, "")
	flags.IntVar(&o.FieldBytes, "bytes", dump.DefaultFieldBytes, "")
	files, err := anywhere(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, dumpUsage, dump.DefaultFieldBytes)
		return exitOK
	case err == nil && len(files) == 0:
		err = errors.New("no file is named")
	case err == nil && o.FieldBytes < 0:
		err = errors.New("--bytes is below 0")
	}
	if err != nil {
		fmt.Fprintf(stderr, "broker dump: %v: see broker dump --help\n", err)
		return exitUsage
	}
	code := exitOK
	for i, name := range files {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		faults, err := dump.File(stdout, vfs.OS, name, o)
		if err != nil {
			fmt.Fprintln(stderr, "broker dump:", err)
		}
		if err != nil || faults > 0 {
			code = exitFailed
		}
	}
	return code
}

// anywhere parses flags that may stand before, between and after the files.
func anywhere(flags *flag.FlagSet, args []string) (files []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return files, nil
		}
		if at := len(args) - len(rest); at > 0 && args[at-1] == "--" {
			return append(files, rest...), nil
		}
		files, args = append(files, rest[0]), rest[1:]
	}
}
