// The driver of kcat (../../PROTOCOL.md), a command-line tool around librdkafka: a member is a kcat -G, a produce command a kcat -P for each
// partition. kcat has no topic creation, no commit on request (it commits by
// itself every 5 s, as its -X takes auto.commit.interval.ms for a topic's property, and whenever it gives up partitions), and cannot give each record headers of its own.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func main() {
	d := &driver{}
	wire.Main(wire.Driver{
		Client: "kcat", Version: version(), Language: "C",
		Codecs:   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Features: []string{"idempotent", "range", "cooperative"},
		Produce:  produce, Join: d.join, Leave: d.leave,
	})
}

// version is that of kcat and of the librdkafka that it is linked with.
func version() string {
	out, err := exec.Command("kcat", "-V").Output()
	m := regexp.MustCompile(`Version (\S+) .*librdkafka (\S+)`).FindSubmatch(out)
	if err != nil || m == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s (librdkafka %s)", m[1], m[2])
}

var delivered = regexp.MustCompile(`(?m)^% Message delivered to partition (\d+) \(offset (\d+)\)`)

func produce(ctx context.Context, addr string, c wire.Command) ([][3]int64, error) {
	numbers := make([][]int, c.Partitions)
	input := make([]bytes.Buffer, c.Partitions)
	for _, r := range c.Records() {
		numbers[r.Partition] = append(numbers[r.Partition], r.Number)
		fmt.Fprintf(&input[r.Partition], "%s\t%s\n", r.Key, r.Value)
	}
	var acked [][3]int64
	for p := range c.Partitions {
		// -vvv tells the offset of each record, in the order of the records.
		cmd := exec.CommandContext(ctx, "kcat", "-P", "-b", addr, "-t", c.Topic, "-p", strconv.Itoa(p), "-K", `\t`, "-z", c.Codec, "-vvv",
			"-X", "acks=all", "-X", "enable.idempotence="+strconv.FormatBool(c.Idempotent))
		cmd.Stdin = &input[p]
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("kcat -P: %w: %s", err, out)
		}
		for i, m := range delivered.FindAllSubmatch(out, -1) {
			offset, err := strconv.ParseInt(string(m[2]), 10, 64)
			if err != nil || i >= len(numbers[p]) {
				return nil, fmt.Errorf("kcat -P: %s: %w", m[0], err)
			}
			acked = append(acked, [3]int64{int64(numbers[p][i]), int64(p), offset})
		}
	}
	return acked, nil
}

// driver is one group member.
type driver struct {
	cmd  *exec.Cmd
	done chan error
}

func (d *driver) join(_ context.Context, addr string, c wire.Command, m *wire.Member) error {
	strategy := "range"
	if c.Assignor == "cooperative" {
		strategy = "cooperative-sticky"
	}
	argv := []string{"-b", addr, "-J", "-u", "-E"} // JSON, unbuffered, not ended by a broker that is away
	for _, property := range []string{
		"partition.assignment.strategy=" + strategy, "auto.offset.reset=earliest", "session.timeout.ms=10000", "max.poll.interval.ms=10000",
		"heartbeat.interval.ms=500", "fetch.wait.max.ms=250", "reconnect.backoff.max.ms=500", "topic.metadata.refresh.interval.ms=1000",
	} {
		argv = append(argv, "-X", property)
	}
	if c.Isolation != "" {
		argv = append(argv, "-X", "isolation.level="+c.Isolation)
	}
	if c.Instance != "" {
		argv = append(argv, "-X", "group.instance.id="+c.Instance)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	d.cmd = exec.Command("kcat", append(argv, "-G", c.Group, c.Topic)...)
	// One pipe for both streams: rebalances, which kcat tells on stderr, stay in order with the records.
	d.cmd.Stdout, d.cmd.Stderr = w, w
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no kcat outlives its driver
	if err := d.cmd.Start(); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	d.done = make(chan error, 1)
	go func() {
		follow(r, m)
		d.done <- d.cmd.Wait()
	}()
	return nil
}

// leave lets kcat close its consumer, which commits and leaves the group.
func (d *driver) leave(_ context.Context, m *wire.Member) error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-d.done
	if owned := m.Owned(); len(owned) > 0 {
		return fmt.Errorf("kcat ended (%w) and had not given up %v", err, owned)
	}
	return err
}

// partitionList reads "topic [0], topic [1]".
func partitionList(text string) (partitions []int) {
	for _, m := range regexp.MustCompile(`\[(\d+)\]`).FindAllStringSubmatch(text, -1) {
		if p, err := strconv.Atoi(m[1]); err == nil {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// rebalanced is kcat's line about a rebalance: "...(memberid x): assigned: topic [0], topic [1]", or with a cooperative assignor
// "...: incremental assignment of 2 partition(s) (memberid x, COOPERATIVE rebalance protocol): topic [0], topic [1]".
func rebalanced(line string, m *wire.Member) {
	head, list, _ := strings.Cut(line, "): ")
	partitions := partitionList(list)
	lost := strings.Contains(head, "assignment lost")
	switch {
	case len(partitions) == 0: // assigned nothing
	case strings.HasPrefix(list, "assigned: "), strings.Contains(head, ": incremental assign"):
		m.Assigned(partitions)
	case strings.HasPrefix(list, "revoked: "), strings.Contains(head, ": incremental revo"), strings.Contains(head, ": incremental unassign"):
		m.Revoked(partitions, lost)
	default:
		m.Closed(fmt.Errorf("a line of kcat that the driver does not know: %s", line))
	}
}
