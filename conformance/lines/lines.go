// Package lines makes the text that the client tests produce, and checks what they consumed. The text is what people send through Kafka most:
// access log lines of a few services. The same n gives the same bytes on every machine.
package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

var (
	services = []string{"gateway", "orders", "billing", "search", "inventory", "auth"}
	methods  = []string{"GET", "GET", "GET", "POST", "PUT", "DELETE"}
	paths    = []string{"/api/v2/orders/%d", "/api/v2/customers/%d/invoices", "/search?q=item%d&page=2", "/static/img/%d.webp", "/healthz?n=%d"}
	statuses = []int{200, 200, 200, 200, 200, 201, 204, 301, 304, 400, 404, 500, 503}
	agents   = []string{"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0", "curl/8.5.0", "okhttp/4.12.0", "Grüße/1.0 (naïve; 東京)"}
)

// Write writes n lines of about 180 bytes. Each says its own number, from 0, after "seq=", so every line is unique.
func Write(w io.Writer, n int) error {
	r := rand.New(rand.NewPCG(4, 4))
	at := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	out := bufio.NewWriterSize(w, 1<<16)
	for i := range n {
		at = at.Add(time.Duration(r.IntN(4_000)) * time.Microsecond)
		status := statuses[r.IntN(len(statuses))]
		level := "INFO"
		if status >= 500 {
			level = "ERROR"
		}
		path := fmt.Sprintf(paths[r.IntN(len(paths))], r.IntN(100_000))
		_, err := fmt.Fprintf(out, "%s %s %s-%d req=%016x seq=%d \"%s %s HTTP/1.1\" %d %d %.1fms \"%s\"\n", at.Format("2006-01-02T15:04:05.000000Z"), level,
			services[r.IntN(len(services))], r.IntN(8), r.Uint64(), i, methods[r.IntN(len(methods))], path, status, r.IntN(50_000),
			r.ExpFloat64()*20, agents[r.IntN(len(agents))])
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// File writes n lines into a new file.
func File(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := Write(f, n); err != nil {
		f.Close() //nolint:errcheck // the write's error says more
		return err
	}
	return f.Close()
}

// Slice returns the first n lines without their line ends.
func Slice(n int) [][]byte {
	var b bytes.Buffer
	if err := Write(&b, n); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return bytes.Split(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\n"))
}

var seq = []byte(" seq=")

// Number is the line's own number.
func Number(line []byte) (int, error) {
	_, after, found := bytes.Cut(line, seq)
	digits, _, _ := bytes.Cut(after, []byte(" "))
	n, err := strconv.Atoi(string(digits))
	if !found || err != nil {
		return 0, fmt.Errorf("not one of the lines: %q", line)
	}
	return n, nil
}

// Checker compares consumed lines with those that were produced.
type Checker struct {
	want [][]byte
	last map[int32]int // per partition: the number of its line before
	came []bool        // by number of line
	seen int
}

// NewChecker returns a Checker for want, the lines that were produced in this order.
func NewChecker(want [][]byte) *Checker {
	return &Checker{want: want, last: map[int32]int{}, came: make([]bool, len(want))}
}

// Add takes the next line of a partition. An error says that its content is not what was produced, or that the partition's order is not the
// producer's, or that the line came twice.
func (c *Checker) Add(partition int32, line []byte) error {
	n, err := Number(line)
	if err != nil {
		return err
	}
	if n < 0 || n >= len(c.want) || !bytes.Equal(c.want[n], line) {
		return fmt.Errorf("partition %d: line %d is not the one produced: %q", partition, n, line)
	}
	if last, ok := c.last[partition]; ok && n <= last {
		return fmt.Errorf("partition %d: line %d after line %d", partition, n, last)
	}
	if c.came[n] {
		return fmt.Errorf("partition %d: line %d came before, from another partition", partition, n)
	}
	c.last[partition], c.came[n] = n, true
	c.seen++
	return nil
}

// Done reports lines that did not come.
func (c *Checker) Done() error {
	if c.seen != len(c.want) {
		return fmt.Errorf("%d lines of %d came back", c.seen, len(c.want))
	}
	return nil
}

// Seen is the number of lines that came.
func (c *Checker) Seen() int { return c.seen }

// Partitions is the number of partitions they came from.
func (c *Checker) Partitions() int { return len(c.last) }
