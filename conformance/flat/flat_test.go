//go:build linux

// Package flat measures the built broker from outside: what it holds in memory, and how soon it listens. Memory is RssAnon, which
// leaves file-backed pages out, as ST-20 does.
package flat

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// A process is the broker as its user starts it.
type process struct {
	*exec.Cmd
	addr  string
	ready time.Duration // from its start to the line that says so
}

var listening = regexp.MustCompile(`listeners=\[PLAINTEXT://(\S+)\]`)

func start(t *testing.T, binary, dir string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, "--data-dir", dir, "--listeners", "PLAINTEXT://127.0.0.1:0", "--http-listen", "off")}
	p.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DOZE_KAFKA_") }) // the tests' own
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			p.addr = m[1]
		}
		if strings.Contains(lines.Text(), "Kafka Server started") {
			p.ready = time.Since(began)
			go io.Copy(io.Discard, out) //nolint:errcheck // until the broker ends
			return p
		}
	}
	t.Fatal("the broker ended before it was ready")
	return nil
}

// end sends a signal and waits; the second time it does nothing.
func (p *process) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if p.ProcessState != nil {
		return
	}
	if err := p.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // how it ended is known
}

// anonymous is the memory of the process that no file is behind, in bytes.
func (p *process) anonymous(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no RssAnon in %s", status)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// fill produces bytes to the topic in large batches.
func fill(t *testing.T, addr string, bytes int) {
	t.Helper()
	cl := client(t, addr, kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("big"), kgo.DisableIdempotentWrite(),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	value := make([]byte, 100<<10)
	for range bytes / len(value) {
		cl.Produce(t.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	cl.Close()
}

// scan reads the topic from its start to its end, and returns how many bytes of values it had.
func scan(t *testing.T, addr string) (total int) {
	t.Helper()
	cl := client(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"big": {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup("big", 0)
	for last := int64(-1); last < end.Offset-1; {
		f := cl.PollFetches(t.Context())
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range f.RecordsAll() {
			total, last = total+len(r.Value), r.Offset
		}
	}
	return total
}

// scanBytes is 1 GiB in every run; the requirement's own figure is 10 GB.
var scanBytes = flag.Int("flat.bytes", 1<<30, "bytes of the large partition that TestMemoryDoesNotGrowWithTheData scans")

// ST-20: a full scan of a large partition leaves no more memory in use than one of a small one.
func TestMemoryDoesNotGrowWithTheData(t *testing.T) {
	const small, most = 10 << 20, 10 << 20
	large := *scanBytes
	binary, dir := target.Binary(t), t.TempDir()
	after := func(size int) int64 {
		p := start(t, binary, dir)
		defer p.end(t, syscall.SIGTERM)
		fill(t, p.addr, size-onDisk(t, dir))
		p.end(t, syscall.SIGTERM)
		p = start(t, binary, dir) // without what producing left
		defer p.end(t, syscall.SIGTERM)
		total := scan(t, p.addr)
		got := p.anonymous(t)
		t.Logf("%.1f MB in use after a scan of %d MB", float64(got)/1e6, total/1e6)
		return got
	}
	few := after(small)
	if many := after(large); many-few >= most {
		t.Errorf("%d bytes more after the large scan, less than %d are allowed", many-few, most)
	}
}

// onDisk is the length of the topic's segments.
func onDisk(t *testing.T, dir string) (size int) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "big-0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		info, err := os.Stat(s)
		if err != nil {
			t.Fatal(err)
		}
		size += int(info.Size())
	}
	return size
}

// ST-21: with 5,000 partitions on disk the broker listens within 50 ms, after a clean stop and after a kill. The fastest of ten starts
// counts, and of more where none was fast: other programs run on this machine too.
func TestStartDoesNotGrowWithPartitions(t *testing.T) {
	const topics, partitions, most, starts, mostStarts = 50, 100, 50 * time.Millisecond, 10, 100
	binary, dir := target.Binary(t), t.TempDir()
	p := start(t, binary, dir)
	idle := p.anonymous(t)
	cl := client(t, p.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	var records []*kgo.Record
	for i := range topics {
		name := fmt.Sprintf("topic-%d", i)
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
			t.Fatal(err)
		}
		for part := range int32(partitions) {
			records = append(records, &kgo.Record{Topic: name, Partition: part, Value: []byte("x")})
		}
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	for _, stop := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p.end(t, stop)
		var took []time.Duration
		for len(took) < starts || len(took) < mostStarts && slices.Min(took) > most {
			p = start(t, binary, dir)
			took = append(took, p.ready)
			p.end(t, stop)
		}
		p = start(t, binary, dir)
		slices.Sort(took)
		t.Logf("after %v: ready after %v (median %v), %.1f MB in use, %.1f MB without partitions", stop, took[0], took[len(took)/2],
			float64(p.anonymous(t))/1e6, float64(idle)/1e6)
		if took[0] > most {
			t.Errorf("after %v: ready after %v, %v are allowed", stop, took, most)
		}
		if grown := p.anonymous(t) - idle; grown > 10<<20 {
			t.Errorf("after %v: %d bytes for partitions that nobody has touched", stop, grown)
		}
	}
}

// ST-22: 1,000 connections, idle after a request or stuck within the response to a fetch, hold at most 40 KB each.
func TestConnectionsAreSmall(t *testing.T) {
	const conns, most = 1000, 40_000
	broker, dir := target.Binary(t), t.TempDir()
	p := start(t, broker, dir)
	fill(t, p.addr, 32<<20)
	p.end(t, syscall.SIGTERM)
	p = start(t, broker, dir)
	spread(t, p.addr)
	p.end(t, syscall.SIGTERM)
	for name, ask := range map[string]func(net.Conn) error{
		"idle": func(c net.Conn) error {
			if _, err := c.Write(apiVersions); err != nil {
				return err
			}
			var size [4]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return err
			}
			_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size[:])))
			return err
		},
		"stuck":                   stuck(fetchAll("big", 1)),
		"stuck at 100 partitions": stuck(fetchAll("spread", 100)),
	} {
		p := start(t, broker, dir)
		scan(t, p.addr)
		before := p.anonymous(t)
		var open []net.Conn
		for range conns {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
			if err := ask(c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		each := (p.anonymous(t) - before) / conns
		t.Logf("%s: %d bytes for each connection", name, each)
		if each > most {
			t.Errorf("%s: a connection holds %d bytes, at most %d are allowed", name, each, most)
		}
		for _, c := range open {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		p.end(t, syscall.SIGTERM)
	}
}

// stuck takes the first bytes of the answer, and no more.
func stuck(request []byte) func(net.Conn) error {
	return func(c net.Conn) error {
		if _, err := c.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 100))
		return err
	}
}

// spread produces 32 MB to the 100 partitions of a topic.
func spread(t *testing.T, addr string) {
	t.Helper()
	cl := client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 100, 1, nil, "spread"); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for part := range int32(100) {
		records = append(records, &kgo.Record{Topic: "spread", Partition: part, Value: make([]byte, 320<<10)})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// apiVersions is a frame: ApiVersions v0, correlation id 1, no client id.
var apiVersions = []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}

// fetchAll is a frame that asks for 32 MB of a topic: Fetch v4, correlation id 1, no client id.
func fetchAll(topic string, partitions int) []byte {
	b := []byte{0, 1, 0, 4, 0, 0, 0, 1, 0xff, 0xff}
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1) // replica -1, no wait, 1 byte
	b = binary.BigEndian.AppendUint32(b, 32<<20)
	b = append(b, 0, 0, 0, 0, 1, 0, byte(len(topic))) // read_uncommitted, one topic
	b = append(b, topic...)
	b = binary.BigEndian.AppendUint32(b, uint32(partitions))
	for i := range partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(i))
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // offset 0
		b = binary.BigEndian.AppendUint32(b, 32<<20)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}
