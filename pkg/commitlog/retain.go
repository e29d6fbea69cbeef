package commitlog

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// Limited says whether retention may ever delete something. A topic that is
// compacted alone is exempt (ST-30).
func (c *Config) Limited() bool { return c.Delete && (c.RetentionBytes >= 0 || c.RetentionMs >= 0) }

// Expired is where retention would have the log begin at a time (ms): where it
// begins now if all is kept. It moves nothing; MoveStart does, once that is in meta.db.
func (l *Log) Expired(nowMs int64) (start int64, err error) {
	cfg, parts := l.config.Load(), *l.parts.Load()
	if len(parts) < 2 || !cfg.Limited() {
		return l.marks.load().LogStart, l.endedErr()
	}
	n, err := expired(parts, cfg, nowMs, l.largestTimestamp)
	start, prepareErr := l.prepareStart(parts[n].base)
	return start, errors.Join(err, prepareErr)
}

// expired is how many of the oldest segments go: while all of them together
// are larger than the bound, the active one counted, or the newest record is older than the age. The
// active one never goes (ST-32).
func expired(parts []*part, cfg *Config, nowMs int64, largest func(*part) (int64, error)) (n int, err error) {
	total := int64(0)
	for _, p := range parts {
		total += p.bytes()
	}
	for n+1 < len(parts) {
		p := parts[n]
		goes := cfg.RetentionBytes >= 0 && total > cfg.RetentionBytes
		if !goes && cfg.RetentionMs >= 0 {
			ts, err := largest(p)
			if err != nil {
				return n, err
			}
			goes = nowMs-ts > cfg.RetentionMs
		}
		if !goes {
			break
		}
		total -= p.bytes()
		n++
	}
	return n, nil
}

// largestTimestamp is that of a sealed part, or of its file where no record
// has one (LogSegment.largestTimestamp).
func (l *Log) largestTimestamp(p *part) (int64, error) {
	s, err := l.open(p)
	if err != nil {
		return 0, err
	}
	if ts, _ := s.LargestTimestamp(); ts >= 0 {
		return ts, nil
	}
	ts, err := fileTime(&l.segment, p.base)
	if err != nil {
		return 0, l.readError(p, err)
	}
	return ts, nil
}

// fileTime is when a segment's log was last written, in ms.
func fileTime(o *segment.Options, base int64) (int64, error) {
	info, err := o.FS.Stat(filepath.Join(o.Dir, segment.FileName(base, segment.LogSuffix)))
	if err != nil {
		return 0, err
	}
	return info.ModTime().UnixMilli(), nil
}

// ExpiredClosed is Expired for a log that is not open, and does not open it:
// it goes by the names and sizes in its directory and the last entries of its
// time indexes (ST-33). Before a segment is given up by its age it is asked itself, so that
// no damaged index costs a record. ok is false if nothing goes. The caller keeps others from opening the log.
func ExpiredClosed(o *Options, nowMs int64) (start int64, ok bool, err error) {
	if !o.Config.Limited() {
		return 0, false, nil
	}
	entries, err := o.FS.ReadDir(o.Dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return 0, false, err
	}
	s, err := surveyNames(entries, 0)
	if err != nil || len(s.parts) < 2 {
		return 0, false, err
	}
	seg := o.segments()
	n, err := expired(s.parts, o.Config, nowMs, func(p *part) (int64, error) {
		if ts, ok := segment.LastTimestamp(&seg, p.base); ok && nowMs-ts <= o.Config.RetentionMs {
			return ts, nil
		}
		return closedTimestamp(&seg, p.base)
	})
	return s.parts[n].base, n > 0, err
}

// closedTimestamp is largestTimestamp for a segment of a log that is not open.
func closedTimestamp(o *segment.Options, base int64) (int64, error) {
	s, err := segment.Open(o, base)
	if err != nil {
		return 0, err
	}
	ts, _ := s.LargestTimestamp()
	if err := s.Close(); err != nil {
		return 0, err
	}
	if ts >= 0 {
		return ts, nil
	}
	return fileTime(o, base)
}

// TrimClosed removes what lies wholly below o.LogStart from the directory of a
// log that is not open, as Open would. The caller keeps others from opening it.
func TrimClosed(o *Options) error {
	owner, err := Owner(o.FS, o.Dir)
	if err != nil || owner != o.TopicID {
		return err // none, or another topic's, which is not ours to touch (ST-1)
	}
	entries, err := o.FS.ReadDir(o.Dir)
	if err != nil {
		return err
	}
	s, err := surveyNames(entries, o.LogStart)
	if err != nil {
		return err
	}
	if s.below > 0 {
		// Without it a power cut takes the name of the segment that follows those that
		// go, if the process that made it was killed (ST-9).
		if err := o.FS.SyncDir(o.Dir); err != nil {
			return err
		}
	}
	for _, name := range s.remove {
		if err := o.FS.Remove(filepath.Join(o.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(s.remove) == 0 {
		return nil
	}
	if o.Stats != nil {
		o.Stats.Removed.Add(int64(s.below))
	}
	// Without it a power cut brings back what was deleted, until the log is opened.
	return o.FS.SyncDir(o.Dir)
}
