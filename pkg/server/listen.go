package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// handshakeTimeout bounds a TLS handshake.
const handshakeTimeout = 10 * time.Second

// A Server serves the connections of any number of listeners.
type Server struct {
	opts   Options
	stats  Stats
	memory *budget

	ctx    context.Context // ends with ErrShutdown
	cancel context.CancelCauseFunc

	lastID   atomic.Uint64
	tick     atomic.Int64 // counts the sweeps for idle connections
	stopping atomic.Bool
	conns    sync.WaitGroup

	// What was warned of already: a frame that is too large, and the APIs that
	// are not spoken, or not in some version.
	toldSize atomic.Bool
	toldAPI  [maxKeys + 1]atomic.Bool // the last one for keys of no API

	mu        sync.Mutex
	sweeping  bool // the sweeper goroutine exists
	open      map[*conn]struct{}
	listeners map[net.Listener]struct{}
}

// New makes a Server. It does nothing until Serve.
func New(opts Options) *Server {
	s := &Server{
		opts:      opts.withDefaults(),
		open:      map[*conn]struct{}{},
		listeners: map[net.Listener]struct{}{},
	}
	s.memory = &budget{limit: s.opts.RequestMemoryBytes, evictions: &s.stats.Evictions}
	s.stats.memory = s.memory
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// toldFor says whether an API was warned of.
func (s *Server) toldFor(key int16) *atomic.Bool {
	if key < 0 || key >= maxKeys {
		key = maxKeys
	}
	return &s.toldAPI[key]
}

// Stats returns the counters.
func (s *Server) Stats() *Stats { return &s.stats }

// Serve accepts the connections of ln, which it closes in the end, until ctx
// ends or Shutdown: both are no error. name is the listener's, such as
// PLAINTEXT. Connections outlive the end of ctx: Shutdown ends them.
func (s *Server) Serve(ctx context.Context, ln net.Listener, name string) error {
	if !s.addListener(ln) {
		return errors.Join(ErrShutdown, ln.Close())
	}
	defer s.removeListener(ln)
	stop := context.AfterFunc(ctx, func() { s.removeListener(ln) })
	defer stop()
	var pause time.Duration
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.start(nc, name)
		case ctx.Err() != nil, s.stopping.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Such as too many open files: connections that end make room.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Logger.Warn("cannot accept a connection; trying again", "listener", name, "error", err.Error(), "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			case <-s.ctx.Done():
			}
		}
	}
}

func (s *Server) addListener(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	s.listeners[ln] = struct{}{}
	if !s.sweeping {
		s.sweeping = true
		go s.sweep()
	}
	return true
}

// removeListener closes ln, once.
func (s *Server) removeListener(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.listeners[ln]; !ok {
		return
	}
	delete(s.listeners, ln)
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.opts.Logger.Warn("closing a listener", "error", err.Error())
	}
}

// start serves a connection in a goroutine of its own.
func (s *Server) start(nc net.Conn, name string) {
	c := s.newConn(nc, name)
	s.mu.Lock()
	if s.stopping.Load() {
		s.mu.Unlock()
		c.hangUp()
		return
	}
	s.open[c] = struct{}{}
	s.conns.Add(1) // before Shutdown waits, which takes mu first
	s.mu.Unlock()
	s.stats.ConnectionsOpen.Add(1)
	s.stats.ConnectionsTotal.Add(1)
	go func() {
		s.tell(c, true)
		c.serve()
	}()
}

// ended forgets a connection that is closed and has no goroutine but the caller.
func (s *Server) ended(c *conn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.stats.ConnectionsOpen.Add(-1)
	s.tell(c, false)
	s.conns.Done()
}

func (s *Server) tell(c *conn, open bool) {
	if s.opts.OnConn != nil {
		s.opts.OnConn(&c.info, open)
	}
}

// handshake does that of TLS, so that it can't take for ever.
func (c *conn) handshake() error {
	tc, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, handshakeTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		return malformedf("TLS handshake: %v", err)
	}
	return nil
}

// Shutdown stops the server: no new connections and no new requests, the
// context of requests under way ends with ErrShutdown, their replies are sent,
// connections close. What is not done within ShutdownTimeout or ctx is cut
// off, and an error says how many connections that were.
func (s *Server) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ShutdownTimeout)
	defer cancel()
	s.mu.Lock()
	s.stopping.Store(true)
	listeners := s.listeners
	s.listeners = map[net.Listener]struct{}{}
	s.mu.Unlock()
	for ln := range listeners {
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.opts.Logger.Warn("closing a listener", "error", err.Error())
		}
	}
	s.cancel(ErrShutdown)
	s.eachConn(func(c *conn) {
		// Wakes readers. A connection that has no deadlines ends with the rest.
		if err := c.nc.SetReadDeadline(time.Unix(1, 0)); err != nil {
			c.log(slog.LevelDebug, "setting a deadline", "error", err.Error())
		}
	})
	drained := make(chan struct{})
	go func() {
		s.conns.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	return s.cutOff(drained)
}

// cutOffTimeout is how long handlers get to notice that their connection was
// cut off.
const cutOffTimeout = 500 * time.Millisecond

// cutOff closes the connections that did not drain in time.
func (s *Server) cutOff(drained <-chan struct{}) error {
	n := 0
	s.eachConn(func(c *conn) {
		n++
		c.hangUp()
	})
	late := time.NewTimer(cutOffTimeout)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	}
	if n == 0 {
		return nil
	}
	return &cutOffError{n}
}

type cutOffError struct{ conns int }

func (e *cutOffError) Error() string {
	return fmt.Sprintf("shutdown: %d connections did not drain in time and were cut off", e.conns)
}

// eachConn calls f for every open connection.
func (s *Server) eachConn(f func(*conn)) {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.open))
	for c := range s.open {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}
