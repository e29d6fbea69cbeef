package clients

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/lines"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const kcatLimit = 5 * time.Minute

// Show 1: a big file goes through kcat (librdkafka) with each codec and comes back the same, byte for byte; the topic makes itself.
func TestKcat(t *testing.T) {
	target.Need(t, "kcat")
	broker := target.Start(t, target.Options{})
	version := regexp.MustCompile(`Version .*librdkafka \S+`).Find(run(t, time.Minute, nil, "kcat", "-V"))
	n := *kcatLines
	if testing.Short() {
		n = 100_000
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := lines.File(path, n); err != nil {
		t.Fatal(err)
	}
	want := hashFile(t, path)
	t.Logf("%s; kcat %s; %d lines, sha256 %.8s", broker.Name(), version, n, want)
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) { kcatBigFile(t, broker.Addr(), codec, path, want, n) })
	}
	t.Run("idempotent", func(t *testing.T) { kcatIdempotent(t, broker.Addr()) })
	t.Run("metadata", func(t *testing.T) { kcatMetadata(t, broker.Addr(), n) })
}

func kcatBigFile(t *testing.T, addr, codec, path, want string, n int) {
	topic := "kcat-" + codec
	start := time.Now()
	run(t, kcatLimit, nil, "kcat", "-b", addr, "-P", "-t", topic, "-p", "0", "-z", codec, "-l", path)
	produced := time.Since(start)
	start = time.Now()
	hash := sha256.New()
	cmd := exec.CommandContext(t.Context(), "kcat", "-b", addr, "-C", "-t", topic, "-o", "beginning", "-e", "-q")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = hash, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat -C: %v\n%s", err, tail(stderr.Bytes()))
	}
	if got := fmt.Sprintf("%x", hash.Sum(nil)); got != want {
		t.Fatalf("sha256 of what was consumed is %s, of the file %s", got, want)
	}
	checkCodec(t, addr, topic, codec)
	t.Logf("%d lines the same; produced in %v, consumed in %v", n, produced.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
}

// kcatIdempotent spreads keyless lines over several partitions with the idempotent producer.
func kcatIdempotent(t *testing.T, addr string) {
	path, want := textFile(t, *someLines)
	topic := createTopic(t, addr, "kcat-idempotent")
	run(t, kcatLimit, nil, "kcat", "-b", addr, "-P", "-t", topic, "-X", "enable.idempotence=true", "-X", "sticky.partitioning.linger.ms=0", "-z", "lz4", "-l", path)
	out := run(t, kcatLimit, nil, "kcat", "-b", addr, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %s\n")
	checkConsumed(t, want, " ", partitions, out)
}

func kcatMetadata(t *testing.T, addr string, n int) {
	if out := run(t, time.Minute, nil, "kcat", "-b", addr, "-L"); !strings.Contains(string(out), `topic "kcat-zstd" with 1 partitions`) {
		t.Errorf("kcat -L does not list the topic:\n%s", out)
	}
	for when, offset := range map[string]int{"-2": 0, "-1": n, "1": 0} {
		out := run(t, time.Minute, nil, "kcat", "-b", addr, "-Q", "-t", "kcat-none:0:"+when)
		if want := fmt.Sprintf("offset %d", offset); !strings.Contains(string(out), want) {
			t.Errorf("kcat -Q for timestamp %s: %q, want %q", when, bytes.TrimSpace(out), want)
		}
	}
}

func hashFile(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
