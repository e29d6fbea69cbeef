package commitlog

import (
	"errors"
	"io/fs"
	"math"

	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// CheckSealed checks every batch of the sealed segments in o.Dir, which were
// not synced before their successors were made (ST-4): what is torn is cut off the end of each,
// its indexes are made anew, and all of it is synced. The newest segment is
// left to Open. Segments behind one that was cut stay: they hold what was acknowledged later.
func CheckSealed(o Options) error {
	l := newLog(o)
	entries, err := o.FS.ReadDir(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.checkTopicID(); err != nil {
		return err
	}
	s, err := l.survey(entries)
	if err != nil || len(s.parts) < 2 {
		return err
	}
	for _, p := range s.parts[:len(s.parts)-1] {
		if err := l.checkSealed(p.base); err != nil {
			return err
		}
	}
	// Without it the names of the indexes could be gone, or those of the segments themselves.
	return o.FS.SyncDir(o.Dir)
}

func (l *Log) checkSealed(base int64) error {
	s, r, err := segment.Recover(&l.segment, base, false, math.MaxInt64, nil)
	if err != nil {
		return err
	}
	if r.Cut > 0 {
		l.logger().Warn("the end of a segment was torn and has been cut off", "segment", segment.FileName(base, segment.LogSuffix),
			"bytes", r.Cut, "reason", r.Reason, "next offset", r.Next)
	}
	l.o.Stats.Recovered.Add(r.Scanned)
	l.o.Stats.Cut.Add(r.Cut)
	return errors.Join(s.Seal(), s.Close())
}
