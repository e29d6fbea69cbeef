// Package wire is the driver protocol (../../PROTOCOL.md) for the drivers that are written in Go: it reads commands, calls the client, and
// writes replies and events.
package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// Command is one line that the orchestrator sends.
type Command struct {
	ID         int    `json:"id"`
	Do         string `json:"do"`
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Codec      string `json:"codec"`
	Idempotent bool   `json:"idempotent"`
	From       int    `json:"from"`
	Count      int    `json:"count"`
	Group      string `json:"group"`
	Assignor   string `json:"assignor"`
	Instance   string `json:"instance"`
	Isolation  string `json:"isolation,omitempty"`

	TransactionalID string           `json:"transactional_id,omitempty"`
	TimeoutMillis   int              `json:"timeout,omitempty"` // of transactions
	End             string           `json:"end,omitempty"`     // of this one: "commit", "abort", "hang"
	Offsets         map[string]int64 `json:"offsets,omitempty"` // to commit for Group, by partition
}

// Line is one line that a driver writes: a reply (Re is not 0) or an event.
type Line struct {
	Re        int              `json:"re,omitempty"`
	Event     string           `json:"event,omitempty"`
	Error     string           `json:"error,omitempty"`
	Client    string           `json:"client,omitempty"`
	Version   string           `json:"version,omitempty"`
	Language  string           `json:"language,omitempty"`
	Codecs    []string         `json:"codecs,omitempty"`
	Features  []string         `json:"features,omitempty"`
	Acked     [][3]int64       `json:"acked,omitempty"` // number of the record, partition, offset
	Committed map[string]int64 `json:"committed,omitempty"`

	Partitions []int `json:"partitions,omitempty"`
	Owned      []int `json:"owned,omitempty"`
	Lost       bool  `json:"lost,omitempty"`

	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	Key       string `json:"key,omitempty"`
	Value     string `json:"value,omitempty"`
	Header    string `json:"header,omitempty"`
}

// Record is one record of the workload.
type Record struct {
	Number    int
	Partition int
	Key       string
	Value     string
	Header    string // the value of header "h"
}

var padding = strings.Repeat("x", 200)

// RecordOf is the record of number i of a topic with that many partitions.
func RecordOf(i, partitions int) Record {
	n := strconv.Itoa(i)
	return Record{Number: i, Partition: i % partitions, Key: "key-" + n, Value: "value-" + n + "-" + padding, Header: n}
}

// Records are those that a produce command asks for.
func (c Command) Records() []Record {
	records := make([]Record, c.Count)
	for i := range records {
		records[i] = RecordOf(c.From+i, c.Partitions)
	}
	return records
}

// PartitionOffsets are those that a txn command commits, by partition.
func (c Command) PartitionOffsets() (map[int32]int64, error) {
	offsets := map[int32]int64{}
	for name, offset := range c.Offsets {
		p, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, err
		}
		offsets[int32(p)] = offset
	}
	return offsets, nil
}

// Driver is a client behind the protocol. A func that is nil is a command that the client does not have.
type Driver struct {
	Client, Version, Language string
	Codecs, Features          []string

	Create  func(ctx context.Context, addr string, c Command) error
	Produce func(ctx context.Context, addr string, c Command) ([][3]int64, error)
	Join    func(ctx context.Context, addr string, c Command, m *Member) error
	Commit  func(ctx context.Context, m *Member) (map[int]int64, error)
	Leave   func(ctx context.Context, m *Member) error
	Txn     func(ctx context.Context, addr string, c Command) error
}

// ModuleVersion is the version of a module that this program was built with, without its v.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}

// Main serves commands from stdin until quit or the end of stdin.
func Main(d Driver) {
	m := &Member{out: &output{w: os.Stdout}, next: map[int]int64{}}
	if err := serve(context.Background(), d, os.Getenv("BOOTSTRAP"), os.Stdin, m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, d Driver, addr string, in io.Reader, m *Member) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c Command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if c.Do == "quit" {
			return m.out.write(Line{Re: c.ID})
		}
		reply, err := d.do(ctx, addr, c, m)
		reply.Re = c.ID
		if err != nil {
			reply.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if err := m.out.write(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (d Driver) do(ctx context.Context, addr string, c Command, m *Member) (Line, error) {
	absent := fmt.Errorf("%s has no %s", d.Client, c.Do)
	switch {
	case c.Do == "info":
		return Line{Client: d.Client, Version: d.Version, Language: d.Language, Codecs: d.Codecs, Features: d.Features}, nil
	case c.Do == "create" && d.Create != nil:
		return Line{}, d.Create(ctx, addr, c)
	case c.Do == "produce":
		acked, err := d.Produce(ctx, addr, c)
		return Line{Acked: acked}, err
	case c.Do == "join":
		return Line{}, d.Join(ctx, addr, c, m)
	case c.Do == "commit" && d.Commit != nil:
		committed, err := d.Commit(ctx, m)
		named := map[string]int64{}
		for p, offset := range committed {
			named[strconv.Itoa(p)] = offset
		}
		return Line{Committed: named}, err
	case c.Do == "txn" && d.Txn != nil:
		return Line{}, d.Txn(ctx, addr, c)
	case c.Do == "leave":
		return Line{}, d.Leave(ctx, m)
	}
	return Line{}, absent
}

// output keeps lines whole.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) write(l Line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err = o.w.Write(append(b, '\n'))
	return err
}
