package commitlog

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// failedName is the file that says that an fsync of the partition has failed.
// After that the page cache may hold batches that count as written and are on
// no disk: the next process reads them, its fsyncs succeed, and a power cut
// takes what they had promised (ST-61). A power cut before that needs no such file, so that it is never synced.
const failedName = "fsync-failed"

// noteFailure leaves word for the next open: of an fsync that has failed and, at or above 0, of a sealed segment whose rewritten log may have
// its name in the page cache alone. Where the disk refuses even that, the log has told of the failure.
func (l *Log) noteFailure(rewritten int64) {
	f, err := l.o.FS.OpenFile(l.path(failedName), os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		if rewritten >= 0 {
			_, err = f.WriteAt([]byte(segment.FileName(rewritten, segment.LogSuffix)), 0)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.logger().Error("there is no word of the failed fsync for the next start", "error", err)
	}
}

// failedBefore says whether a process before this one has left word.
func failedBefore(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == failedName })
}

// rescue writes the newest segment's log anew after a failed fsync, from the
// page cache to other pages, which reach the disk. Older segments were synced
// before their successors were made, but for one that compaction was at; and all other files can be made again or
// missed. An error leaves everything as it was.
func (l *Log) rescue(parts []*part) error {
	word, err := vfs.ReadFile(l.o.FS, l.path(failedName))
	if err != nil {
		return err
	}
	newest := parts[len(parts)-1].base
	if base, _, ok := parseName(string(word)); ok && base != newest && find(parts, base) >= 0 && parts[find(parts, base)].base == base {
		if err := l.writeAnew(base); err != nil {
			return err
		}
		// Without it its indexes, which are made at the first read, could be there beside the log of before after a power cut.
		if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
			return err
		}
	}
	if err := l.writeAnew(newest); err != nil { // the first flush syncs the directory (ST-54)
		return err
	}
	l.logger().Warn("an fsync had failed: the newest segment has been written anew")
	return l.removeFile(failedName)
}

func (l *Log) writeAnew(base int64) error {
	name := l.path(segment.FileName(base, segment.LogSuffix))
	err := vfs.CopySynced(l.o.FS, name+cleanedSuffix, name, 0o644)
	if err == nil {
		err = l.o.FS.Rename(name+cleanedSuffix, name)
	}
	if err != nil {
		_ = l.o.FS.Remove(name + cleanedSuffix) // the next open does, if need be
	}
	return err
}
