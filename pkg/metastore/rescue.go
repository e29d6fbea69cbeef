package metastore

import (
	"errors"
	"fmt"
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
		err = vfs.CopySynced(vfs.OS, path+".new", path, mode)
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
