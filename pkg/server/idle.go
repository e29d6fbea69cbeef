package server

import (
	"log/slog"
	"time"
)

// sweepsPerIdle is how often idle connections are looked for within
// ConnectionsMaxIdle: one is closed at most an eighth of it late.
const sweepsPerIdle = 8

// sweep closes idle connections until Shutdown. Connections only note the
// number of the sweep in which they last moved, so that a request pays neither
// for a timer nor for a clock.
func (s *Server) sweep() {
	ticker := time.NewTicker(max(s.opts.ConnectionsMaxIdle/sweepsPerIdle, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		tick := s.tick.Add(1)
		s.eachConn(func(c *conn) {
			// In this order: a request that stops waiting first notes that it moved.
			if c.waiting.Load() > 0 && !c.blind.Load() || tick-c.active.Load() <= sweepsPerIdle {
				return
			}
			s.stats.ConnectionsIdle.Add(1)
			c.log(slog.LevelDebug, "closing an idle connection", "idle", s.opts.ConnectionsMaxIdle)
			c.hangUp()
		})
	}
}
