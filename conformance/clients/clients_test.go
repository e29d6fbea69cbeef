// Package clients runs one workload through the clients that people use: for each codec a topic is created, lines of text are produced, and
// everything is consumed from the beginning, with assigned partitions, and compared in content and order per partition.
package clients

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/lines"
)

var (
	kcatLines = flag.Int("kcat-lines", 1_000_000, "lines of the file that kcat produces with each codec")
	someLines = flag.Int("lines", 20_000, "lines that every other client produces with each codec")
)

const partitions = 3

// codecs are in the order of their numbers in a batch's attributes.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// run runs a client program with a time limit and returns its standard output; stderr goes into the test's failure.
func run(t *testing.T, limit time.Duration, env []string, argv ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v (limit %v)\n%s%s", filepath.Base(argv[0]), err, limit, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	return stdout.Bytes()
}

// tail keeps the part of an output that says what went wrong.
func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// textFile writes n lines and returns the file's path and the lines.
func textFile(t *testing.T, n int) (string, [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := lines.File(path, n); err != nil {
		t.Fatal(err)
	}
	return path, lines.Slice(n)
}

// checkConsumed compares a client's output, "partition separator line", with what was produced into parts partitions.
func checkConsumed(t *testing.T, want [][]byte, separator string, parts int, output []byte) {
	t.Helper()
	c := lines.NewChecker(want)
	scanner := bufio.NewScanner(bytes.NewReader(output))
	for scanner.Scan() {
		partition, line, _ := bytes.Cut(scanner.Bytes(), []byte(separator))
		p, err := strconv.Atoi(string(partition))
		if err != nil {
			t.Fatalf("no partition in %q", scanner.Bytes())
		}
		if err := c.Add(int32(p), line); err != nil {
			t.Fatal(err)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	checkDone(t, c, parts)
}

func checkDone(t *testing.T, c *lines.Checker, parts int) {
	t.Helper()
	if err := c.Done(); err != nil {
		t.Fatal(err)
	}
	if c.Partitions() != parts {
		t.Fatalf("the lines came from %d partitions, want %d", c.Partitions(), parts)
	}
}
