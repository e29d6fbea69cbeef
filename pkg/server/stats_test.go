package server

import (
	"testing"
	"testing/synctest"
)

func TestStatsCountRequestsAndBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{})
		w := f.connect()
		in, out := 0, 0
		for _, frame := range [][]byte{frameOf(metadata(12), 1), frameOf(produce(1, "a", nil), 2), frameOf(metadata(12), 3)} {
			in += len(frame)
			w.send(frame)
			_, rest := w.receive()
			out += 8 + len(rest)
		}
		w.close()
		synctest.Wait()
		s := f.s.Stats()
		if got := s.BytesIn.Load(); got != int64(in) {
			t.Errorf("%d bytes in, want %d", got, in)
		}
		if got := s.BytesOut.Load(); got != int64(out) {
			t.Errorf("%d bytes out, want %d", got, out)
		}
		if s.Requests(0) != 1 || s.Requests(1) != 0 || s.Requests(3) != 2 || s.Requests(-1) != 0 || s.Requests(maxKeys) != 0 || s.ConnectionsTotal.Load() != 1 || s.ConnectionsOpen.Load() != 0 {
			t.Error("wrong counts")
		}
		f.stop()
	})
}
