package metastore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// failedSuffix makes the name of the file that says that a commit has failed.
// If it was an fsync that did, the page cache may hold pages that count as
// written and are on no disk: the next process would build on them, its fsyncs
// would succeed, and a power cut would leave a tree with holes (ST-64). A power cut before that needs no such
// file, so that it is never synced.
const failedSuffix = ".failed"

// noteFailure leaves word for the next Open. Where the disk refuses even that, the log has told of the failure.
func (s *Store) noteFailure() {
	f, err := vfs.OS.OpenFile(s.o.Path+failedSuffix, os.O_RDWR|os.O_CREATE, mode)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		s.o.Logger.Error("meta.db: there is no word of the failed commit for the next start", "error", err)
	}
}

// rescue writes the file anew after a failed commit, from the page cache to
// other pages, which reach the disk. Nobody has it open: the data directory is locked.
func rescue(path string) error {
	_, err := vfs.OS.Stat(path + failedSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = copySynced(path+".new", path)
	}
	if err == nil {
		err = vfs.OS.Rename(path+".new", path)
	}
	if err == nil {
		// Without it the old name could be back after a power cut, and what is committed from here on be gone.
		err = vfs.OS.SyncDir(filepath.Dir(path))
	}
	if err == nil {
		err = vfs.OS.Remove(path + failedSuffix)
	}
	if err != nil {
		return fmt.Errorf("write %s anew after a failed commit: %w", path, err)
	}
	return nil
}

// copySynced copies a file. Without its sync a power cut could leave the name, and a file with holes.
func copySynced(to, from string) error {
	src, err := vfs.OS.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read
	dst, err := vfs.OS.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	size, err := src.Size()
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(dst, 0), io.NewSectionReader(src, 0, size))
	}
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
