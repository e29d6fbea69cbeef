//go:build unix

package matrix

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
	"github.com/dozekafka/doze-kafka/conformance/proc"
)

var events = flag.Bool("events", false, "log the events of every client, not only when it fails")

// session is the drivers of one client, their events, and the ledger that these are checked against.
type session struct {
	t    *testing.T
	argv []string
	env  []string
	dir  string
	done chan struct{} // closed when the pump has ended

	mu      sync.Mutex
	sources []*source
	ledger  *ledger
	records []wire.Line   // read, where there is no ledger
	failure error         // the first thing that was not as it should be
	changed chan struct{} // closed and made anew after every batch of lines
	stopped bool
	trace   []string // the steps, and the events that are no records
}

// driver is one process.
type driver struct {
	name    string
	session *session
	process *proc.Process
	in      io.WriteCloser
	quits   atomic.Bool // was told to

	mu      sync.Mutex
	id      int
	replies map[int]chan wire.Line
}

func newSession(t *testing.T, argv, env []string) *session {
	s := &session{t: t, argv: argv, env: env, dir: t.TempDir(), done: make(chan struct{}), changed: make(chan struct{})}
	go s.pump()
	t.Cleanup(s.close)
	return s
}

// start runs another process of the client's driver.
func (s *session) start(name string) *driver {
	s.t.Helper()
	d := &driver{name: name, session: s, replies: map[int]chan wire.Line{}}
	process, in, out, err := proc.Talk(filepath.Join(s.dir, name+".log"), s.env, s.argv...)
	if err != nil {
		s.t.Fatal(err)
	}
	d.process, d.in = process, in
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, &source{driver: d, pipe: out})
	return d
}

// close ends what still runs. A failed test shows what was said.
func (s *session) close() {
	s.mu.Lock()
	s.stopped = true
	sources := s.sources
	s.mu.Unlock()
	<-s.done
	for _, src := range sources {
		src.driver.process.Kill()
		src.driver.in.Close() //nolint:errcheck // its reader is gone
		src.pipe.Close()      //nolint:errcheck // nothing is read from it any more
		if s.t.Failed() {
			s.t.Logf("end of the log of %s:\n%s", src.driver.name, src.driver.process.LogTail(25))
		}
	}
	if s.t.Failed() || *events {
		for _, line := range s.trace {
			s.t.Log(line)
		}
	}
}

// pump reads what the drivers write.
func (s *session) pump() {
	defer close(s.done)
	for {
		s.mu.Lock()
		sources, stopped := s.sources, s.stopped
		s.mu.Unlock()
		if stopped {
			return
		}
		err := wait(sources)
		if err == nil {
			err = drainAll(sources)
		}
		s.mu.Lock()
		s.fail(err)
		s.judge(sources)
		for _, src := range sources {
			if src.ended && !src.driver.quits.Load() && !s.stopped {
				s.fail(fmt.Errorf("the driver of %s ended by itself", src.driver.name))
			}
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
}

// judge handles the lines that were read, in an order in which they can have happened.
func (s *session) judge(sources []*source) {
	queues := make([][]wire.Line, len(sources))
	for i, src := range sources {
		for _, b := range src.lines {
			line, err := parse(b)
			s.fail(err)
			queues[i] = append(queues[i], line)
		}
		src.lines = nil
	}
	owned := make([]partitionSet, len(sources))
	if s.ledger != nil {
		for i, src := range sources {
			owned[i].add(s.ledger.ownedBy(src.driver.name))
		}
	}
	for _, i := range possibleOrder(owned, queues) {
		for {
			line := queues[i][0]
			queues[i] = queues[i][1:]
			s.handle(sources[i].driver, line)
			if changes(line) {
				break
			}
		}
	}
	for i, src := range sources {
		for _, line := range queues[i] {
			s.handle(src.driver, line)
		}
	}
}

func parse(b []byte) (l wire.Line, err error) {
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("a driver wrote %q: %w", b, err)
	}
	return l, nil
}

func (s *session) handle(d *driver, line wire.Line) {
	if line.Re != 0 {
		d.mu.Lock()
		reply := d.replies[line.Re]
		delete(d.replies, line.Re)
		d.mu.Unlock()
		if reply == nil {
			s.fail(fmt.Errorf("%s replied to %d, which was not asked", d.name, line.Re))
			return
		}
		reply <- line
		return
	}
	if line.Event != "record" {
		lost := ""
		if line.Lost {
			lost = " lost"
		}
		s.note(fmt.Sprintf("%s: %s%s %v owned %v %s", d.name, line.Event, lost, line.Partitions, line.Owned, line.Error))
	}
	if s.ledger != nil {
		s.fail(s.ledger.event(d.name, line))
	} else if line.Event == "record" {
		s.records = append(s.records, line)
	}
}

// note is a line of the trace.
func (s *session) note(what string) { s.trace = append(s.trace, time.Now().Format("05.000 ")+what) }

// fail keeps the first error.
func (s *session) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

// await waits until done, which looks at the ledger under the lock, or fails the test after limit.
func (s *session) await(limit time.Duration, what string, done func(*ledger) bool) {
	s.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		failure, ok, changed := s.failure, done(s.ledger), s.changed
		s.mu.Unlock()
		if failure != nil {
			s.t.Fatalf("%s: %v", what, failure)
		}
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ledger == nil {
				s.t.Fatalf("%s: not within %v; %d records read", what, limit, len(s.records))
			}
			s.t.Fatalf("%s: not within %v; owners %v, read %v, of that by the owners %v, committed %v, produced %v", what, limit, s.ledger.owner, s.ledger.read, s.ledger.next, s.ledger.committed, s.ledger.ends())
		}
	}
}

// with runs f on the ledger under the lock.
func (s *session) with(f func(*ledger) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(f(s.ledger))
	if s.failure != nil {
		s.t.Fatal(s.failure)
	}
}

// try sends a command and returns the reply.
func (d *driver) try(ctx context.Context, c wire.Command) (wire.Line, error) {
	reply := make(chan wire.Line, 1)
	d.mu.Lock()
	d.id++
	c.ID = d.id
	d.replies[c.ID] = reply
	d.mu.Unlock()
	b, err := json.Marshal(c)
	if err != nil {
		return wire.Line{}, err
	}
	if _, err := d.in.Write(append(b, '\n')); err != nil {
		return wire.Line{}, fmt.Errorf("%s: %s: %w", d.name, c.Do, err)
	}
	select {
	case line := <-reply:
		if line.Error != "" {
			return line, fmt.Errorf("%s: %s: %s", d.name, c.Do, line.Error)
		}
		return line, nil
	case <-d.process.Done():
		select {
		case line := <-reply: // written before it ended
			return line, nil
		case <-time.After(5 * time.Second):
			return wire.Line{}, fmt.Errorf("%s: %s: the driver ended", d.name, c.Do)
		}
	case <-ctx.Done():
		return wire.Line{}, fmt.Errorf("%s: %s: no reply: %w", d.name, c.Do, ctx.Err())
	}
}

// do sends a command that has to succeed.
func (d *driver) do(c wire.Command) wire.Line {
	d.session.t.Helper()
	ctx, cancel := context.WithTimeout(d.session.t.Context(), replyWithin)
	defer cancel()
	line, err := d.try(ctx, c)
	if err != nil {
		d.session.t.Fatal(err)
	}
	return line
}

// quit ends the driver in order.
func (d *driver) quit() {
	d.session.t.Helper()
	d.quits.Store(true)
	d.do(wire.Command{Do: "quit"})
	select {
	case <-d.process.Done():
	case <-time.After(replyWithin):
		d.session.t.Fatalf("%s has not ended after quit", d.name)
	}
}
