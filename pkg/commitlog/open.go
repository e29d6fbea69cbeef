package commitlog

import (
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// Open recovers the log in o.Dir, or prepares an empty one. It fails with a
// *TopicIDError if partition.metadata names another topic id (ST-1).
//
// Sealed segments are known by their names and sizes until they are read; only
// the newest is looked at (ST-21).
func Open(o Options) (*Log, error) {
	l := newLog(o)
	entries, err := o.FS.ReadDir(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.beginEmpty()
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := l.checkTopicID(); err != nil {
		return nil, err
	}
	// A process that was killed may have made the names and synced none (ST-54).
	l.dirty.dir, l.dirty.parent = !o.Clean, !o.Clean
	s, err := l.survey(entries)
	if err != nil {
		return nil, err
	}
	if failedBefore(entries) && len(s.parts) > 0 {
		if err := l.rescue(s.parts); err != nil {
			l.o.Stats.Offline.Add(1)
			l.failed = l.storageError("write anew what a failed fsync may have dropped", err)
			l.logger().Error("the partition is offline for writes until the broker restarts", "error", l.failed)
		}
	}
	if err := l.recover(s); err != nil {
		return nil, errors.Join(err, l.closeParts())
	}
	return l, nil
}

func newLog(o Options) *Log {
	if o.Logger == nil || o.Stats == nil {
		shared := *o.Shared
		if shared.Logger == nil {
			shared.Logger = slog.New(slog.DiscardHandler)
		}
		if shared.Stats == nil {
			shared.Stats = new(Stats)
		}
		o.Shared = &shared
	}
	l := &Log{o: o, name: o.Partition.String()}
	l.names = &namesFS{FS: o.FS, dir: o.Dir}
	l.segment = o.segments()
	l.segment.FS = l.names
	l.config.Store(o.Config)
	l.parts.Store(new([]*part))
	l.synced = sync.NewCond(&l.mu)
	l.saved = -1
	l.expireAt = o.Clock.Now().UnixMilli() + expireEvery
	return l
}

func (o *Options) segments() segment.Options {
	return segment.Options{FS: o.FS, Dir: o.Dir, Logger: o.Logger, Files: o.Files, IndexInterval: o.Config.IndexIntervalBytes}
}

// beginEmpty makes the log empty at its start.
func (l *Log) beginEmpty() {
	at := l.o.LogStart
	l.opened = at
	l.marks.store(mark{Offsets: Offsets{LogStart: at, LastStable: at, HighWatermark: at, End: at, Flushed: at}, base: at})
}

// A survey is what the names in a partition's directory say.
type survey struct {
	parts     []*part // by base, ascending
	snapshots []int64 // offsets, ascending
	remove    []string
	below     int // segments below the log start, among those to remove
}

// survey sorts the names out. What a crash or a move of the log start has left
// over is removed, durably.
func (l *Log) survey(entries []fs.DirEntry) (*survey, error) {
	s, err := surveyNames(entries, l.o.LogStart)
	if err != nil {
		return nil, err
	}
	if len(s.remove) > 0 {
		l.logger().Warn("files that belong to no segment are removed", "count", len(s.remove), "first", s.remove[0])
	}
	if s.below > 0 && !l.o.Clean {
		// A process that was killed may have made the successor of what goes, and not
		// synced its name. Without this a power cut takes all of them, and the producers with them (ST-9).
		if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
			return nil, err
		}
	}
	return s, l.removeAll(s.remove)
}

// surveyNames says what is left over: files that a cleaning or a rebuild had not finished, indexes
// without a log, whole segments below the log start, snapshots below the first segment.
func surveyNames(entries []fs.DirEntry, start int64) (*survey, error) {
	s := new(survey)
	for _, e := range entries {
		base, suffix, ok := parseName(e.Name())
		switch {
		case strings.HasSuffix(e.Name(), cleanedSuffix), strings.HasSuffix(e.Name(), rebuiltSuffix), strings.HasSuffix(e.Name(), reboundSuffix):
			s.remove = append(s.remove, e.Name())
		case ok && suffix == segment.LogSuffix:
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			p := &part{base: base}
			p.size.Store(info.Size())
			p.aborts.Store(true)
			s.parts = append(s.parts, p)
		case ok && suffix == snapshotSuffix:
			s.snapshots = append(s.snapshots, base)
		}
	}
	s.below = below(s.parts, start)
	s.parts = s.parts[s.below:]
	for _, e := range entries {
		base, suffix, ok := parseName(e.Name())
		switch {
		case !ok || suffix == snapshotSuffix:
		case !s.has(base):
			s.remove = append(s.remove, e.Name())
		case suffix == segment.TxnIndexSuffix:
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			s.parts[find(s.parts, base)].aborts.Store(info.Size() > 0)
		}
	}
	for len(s.snapshots) > 0 && (len(s.parts) == 0 || s.snapshots[0] < s.parts[0].base) {
		s.remove = append(s.remove, segment.FileName(s.snapshots[0], snapshotSuffix))
		s.snapshots = s.snapshots[1:]
	}
	return s, nil
}

// cleanedSuffix is that of a rewritten segment before it takes the place of the old one.
const cleanedSuffix = ".cleaned"

// rebuiltSuffix is that of an index of aborted transactions that a rebuild had not finished (vfs.WriteFileSync).
const rebuiltSuffix = segment.TxnIndexSuffix + ".tmp"

// reboundSuffix is that of a snapshot that a compaction had not finished writing anew.
const reboundSuffix = snapshotSuffix + ".tmp"

func (s *survey) has(base int64) bool {
	i := find(s.parts, base)
	return i >= 0 && s.parts[i].base == base
}

// baseDigits is how many digits of an offset stand before a suffix.
const baseDigits = 20

// parseName splits the name of a segment's or a snapshot's file.
func parseName(name string) (base int64, suffix string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	suffix = name[len(digits):]
	switch suffix {
	case segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix, snapshotSuffix:
	default:
		return 0, "", false
	}
	if !found || len(digits) != baseDigits || digits[0] < '0' { // no sign
		return 0, "", false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	return base, suffix, err == nil
}

// removeAll removes files, durably: an index or snapshot of another history
// must not be there again beside the batches that are appended from now on.
func (l *Log) removeAll(names []string) error {
	for _, name := range names {
		if err := l.removeFile(name); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return l.o.FS.SyncDir(l.o.Dir)
}
