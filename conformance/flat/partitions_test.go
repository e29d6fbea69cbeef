//go:build linux

package flat

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// manyPartitions is small in every run; the figures that are published are those of 5,000.
var manyPartitions = flag.Int("flat.partitions", 500, "partitions of TestManyPartitions")

// ST-21, PF-9, PF-10: what many partitions cost: their topics, the first record to each, a start, the first touch of each, a record with
// acks=all to each, after a clean stop and after a kill. It prints the figures, beside those of a bare loop over the same files, and
// requires that all succeed. How long a start may take is judged in TestStartDoesNotGrowWithPartitions.
func TestManyPartitions(t *testing.T) {
	const perTopic = 100
	topics := max(1, *manyPartitions/perTopic)
	binary, dir := target.Binary(t), t.TempDir()
	p := start(t, binary, dir)
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprintf("topic-%d", i))
	}
	all := topics * perTopic
	cl := allAcks(t, p.addr)
	timed(t, "create the topics", all, func() {
		if _, err := kadm.NewClient(cl).CreateTopics(t.Context(), perTopic, 1, nil, names...); err != nil {
			t.Fatal(err)
		}
	})
	timed(t, "first acks=all record to each", all, func() { oneEach(t, cl, names, perTopic) })
	timed(t, "second acks=all record to each", all, func() { oneEach(t, cl, names, perTopic) })
	cl.Close()
	for _, stop := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		timed(t, fmt.Sprintf("end by %v", stop), all, func() { p.end(t, stop) })
		p = start(t, binary, dir)
		t.Logf("%-40s %8.1f ms", "ready after that", float64(p.ready.Microseconds())/1e3)
		cl := allAcks(t, p.addr)
		timed(t, "first touch of each", all, func() {
			ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), names...)
			if err != nil || ends.Error() != nil {
				t.Fatal(err, ends.Error())
			}
		})
		t.Logf("%-40s %8.1f MB", "in use, all open", float64(p.anonymous(t))/1e6)
		timed(t, "first acks=all record to each", all, func() { oneEach(t, cl, names, perTopic) })
		cl.Close()
	}
	p.end(t, syscall.SIGTERM)
	for _, workers := range []int{1, 8, 32} {
		timed(t, fmt.Sprintf("append and fdatasync, %d at a time", workers), all, func() { bareSync(t, dir, workers) })
	}
	timed(t, "append to each and one syncfs", all, func() { bareSyncfs(t, dir) })
}

func timed(t *testing.T, what string, n int, do func()) {
	t.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	t.Logf("%-40s %8.1f ms %8.3f ms each of %d", what, float64(took.Microseconds())/1e3, float64(took.Microseconds())/1e3/float64(n), n)
}

func allAcks(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	return client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))
}

// oneEach sends one record to each partition.
func oneEach(t *testing.T, cl *kgo.Client, names []string, perTopic int) {
	t.Helper()
	var records []*kgo.Record
	for _, name := range names {
		for part := range int32(perTopic) {
			records = append(records, &kgo.Record{Topic: name, Partition: part, Value: []byte("one record")})
		}
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// appended opens the log files of all partitions and writes at their ends. The broker has ended, and the data is thrown away.
func appended(t *testing.T, dir string) (open []*os.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "topic-*", "*.log"))
	if err != nil || len(names) == 0 {
		t.Fatal(err, len(names))
	}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(make([]byte, 79)); err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	return open
}

// bareSync is what the disk alone takes for a batch to each of the same files.
func bareSync(t *testing.T, dir string, workers int) {
	files := make(chan *os.File)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for f := range files {
				if err := errors.Join(unix.Fdatasync(int(f.Fd())), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, f := range appended(t, dir) {
		files <- f
	}
	close(files)
	wg.Wait()
}

func bareSyncfs(t *testing.T, dir string) {
	for _, f := range appended(t, dir) {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		t.Fatal(err)
	}
}
