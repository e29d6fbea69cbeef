package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// An access is what there is to tell of a file that the system did not let us write.
type access struct {
	path         string
	mode         fs.FileMode
	owner, group int
	owned        bool   // owner and group are known
	uid, gid     int    // ours
	container    bool   // we are in one
	dir          string // the data directory
	cause        error
}

// explainAccess makes a refused permission into a line that says what to do
// (FX-31); any other error stays as it is.
func explainAccess(err error, s *config.Settings, fsys vfs.FS) error {
	denied, readOnly := errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS)
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok || !denied && !readOnly {
		return err
	}
	a := access{path: at.Path, uid: os.Getuid(), gid: os.Getgid(), container: s.Container, dir: s.DataDir, cause: err}
	if readOnly {
		return a.readOnly()
	}
	// What is not there was refused by the directory that it should be made in.
	for {
		fi, statErr := fsys.Stat(a.path)
		if statErr == nil {
			a.mode = fi.Mode()
			a.owner, a.group, a.owned = vfs.Owner(fi)
			break
		}
		parent := filepath.Dir(a.path)
		if parent == a.path {
			break
		}
		a.path = parent
	}
	return a.denied()
}

// denied is the line for a file of somebody else's.
func (a access) denied() error {
	if !a.owned || a.uid < 0 {
		return fmt.Errorf("data directory: %w: let this user write there, or give the broker another --data-dir", a.cause)
	}
	line := fmt.Sprintf("data directory: %s is not writable: it belongs to uid %d, gid %d (%s), the broker runs as uid %d, gid %d: ",
		a.path, a.owner, a.group, a.mode, a.uid, a.gid)
	switch {
	case a.owner == a.uid && a.mode&0o200 != 0:
		line += "owner and mode allow it, so a security module such as SELinux forbids it (a bind mount then wants the option :z)"
	case a.container:
		line += fmt.Sprintf("chown -R %d:%d the directory that is mounted at %s, or run the container with --user %d:%d, or mount a named volume",
			a.uid, a.gid, a.dir, a.owner, a.group)
	default:
		line += fmt.Sprintf("chown -R %d:%d %s, or run the broker as that user, or give it another --data-dir", a.uid, a.gid, a.dir)
	}
	return &accessError{line, a.cause}
}

// readOnly is the line for a file system that nobody can write.
func (a access) readOnly() error {
	fix := "give the broker another --data-dir"
	if a.container {
		fix = fmt.Sprintf("mount a volume or a tmpfs at %s, without :ro", a.dir)
	}
	return &accessError{fmt.Sprintf("data directory: %s is on a read-only file system: %s", a.path, fix), a.cause}
}

// An accessError is a line for people that unwraps to the system's error.
type accessError struct {
	line  string
	cause error
}

func (e *accessError) Error() string { return e.line }
func (e *accessError) Unwrap() error { return e.cause }
