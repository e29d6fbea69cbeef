package segment

import (
	"errors"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
)

// repair rebuilds the indexes of a sealed segment in which a lookup has met a
// wrong entry, once. Lookups beside it may meet half of it, which they notice like any
// other damage. Those of an active segment have to wait until it is sealed.
func (s *Segment) repair(cause error) {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if s.repaired {
		return
	}
	s.repaired = true
	if !s.sealed.Load() {
		s.opts.log().Error("an index of an active segment is wrong", "file", s.logFile.name, "error", cause)
		return
	}
	file, err := s.logFile.acquire(0)
	if err == nil {
		err = s.rebuildLocked(file, cause)
		s.logFile.release()
	}
	if err != nil {
		s.opts.log().Error("indexes could not be rebuilt", "file", s.logFile.name, "error", err)
	}
}

func (s *Segment) rebuild(file vfs.File, cause error) error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	return s.rebuildLocked(file, cause)
}

// rebuildLocked makes both indexes of a sealed segment from the headers of
// its log, as far as that can be walked. indexMu is held. Only an error of
// reading the log is one: entries that can't be written stay in memory, so that
// a full disk keeps nobody from reading.
func (s *Segment) rebuildLocked(file vfs.File, cause error) error {
	s.resetIndexes()
	w := s.walk(file, 0, s.Size())
	defer w.done()
	var writeErr error
	for {
		h, err := w.header()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, kerr.CorruptMessage) {
			s.opts.log().Error("a sealed segment can't be read to its end", "file", s.logFile.name, "error", err)
			break
		}
		if err != nil {
			return err
		}
		if s.note(w.pos, h, s.opts.interval()) && writeErr == nil {
			writeErr = s.writeIndexes(false)
		}
		w.skip(h)
	}
	if writeErr == nil {
		writeErr = s.writeIndexes(true)
	}
	if writeErr != nil {
		s.opts.log().Warn("rebuilt index entries could not be written and stay in memory", "file", s.logFile.name, "error", writeErr)
	}
	s.opts.log().Warn("indexes rebuilt from the log", "file", s.logFile.name, "bytes", s.Size(), "cause", cause)
	return nil
}

func (s *Segment) resetIndexes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offsets.resetLocked()
	s.times.resetLocked()
	s.indexed = 0
	s.largest = entry{record.NoTimestamp, 0}
}

// note enters a batch into the indexes, and says whether it is time to write them.
func (s *Segment) note(pos int64, h record.Batch, interval int) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(pos, h.LastOffset(), h.MaxTimestamp(), interval)
	return len(s.offsets.tail) >= gather*offsetEntry
}
