package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// FX-31: a directory that is not writable is one line with the path, its owner, our uid, and the fix.
func TestADirectoryOfSomebodyElseIsALineThatSaysWhatToDo(t *testing.T) {
	theirs := access{path: "/var/lib/kafka/data", mode: fs.ModeDir | 0o755, owner: 1234, group: 5678, owned: true,
		uid: 1000, gid: 0, dir: "/var/lib/kafka/data", cause: fs.ErrPermission}
	inContainer := theirs
	inContainer.container = true
	labelled := inContainer
	labelled.owner = 1000
	for _, c := range []struct {
		name string
		a    access
		want []string
	}{
		{"on the machine", theirs, []string{"chown -R 1000:0 /var/lib/kafka/data", "--data-dir"}},
		{"in a container", inContainer, []string{"chown -R 1000:0", "--user 1234:5678", "named volume"}},
		{"ours by its owner", labelled, []string{"SELinux", ":z"}},
	} {
		err := c.a.denied()
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v is no refused permission", c.name, err)
		}
		for _, want := range append(c.want, "/var/lib/kafka/data is not writable", fmt.Sprintf("uid %d", c.a.owner), "drwxr-xr-x", "runs as uid 1000, gid 0") {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: no %q in: %v", c.name, want, err)
			}
		}
	}
}

// What could not be made was refused by the nearest directory that is there.
func TestTheDirectoryThatRefusedIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := config.Default()
	s.DataDir = filepath.Join(dir, "a", "b")
	refused := &fs.PathError{Op: "mkdir", Path: filepath.Join(dir, "a"), Err: syscall.EACCES}
	err := explainAccess(fmt.Errorf("data directory: %w", refused), s, vfs.OS)
	if runtime.GOOS == "windows" {
		t.Skip("no owners on Windows")
	}
	if !strings.Contains(err.Error(), dir+" is not writable: it belongs to uid "+fmt.Sprint(os.Getuid())) {
		t.Error(err)
	}
}

// FX-31: the read-only root of a container, or a mount with :ro.
func TestAReadOnlyFileSystemIsALineThatSaysWhatToDo(t *testing.T) {
	for _, container := range []bool{false, true} {
		s := config.Default()
		s.DataDir, s.Container = "data", container
		disk := faultfs.New(crashfs.New())
		disk.Fail(faultfs.Rule{Kinds: vfs.OpMkdir, Err: syscall.EROFS})
		_, err := openStorage(t.Context(), s, gather(s, []Option{WithFS(disk, t.TempDir())}))
		fix := map[bool]string{false: "another --data-dir", true: "mount a volume or a tmpfs at data"}[container]
		if err == nil || !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "data is on a read-only file system: ") ||
			!strings.Contains(err.Error(), fix) {
			t.Errorf("container %v: %v", container, err)
		}
	}
}

// A file without owners, as on Windows, still gets a way out; another error stays what it is.
func TestOtherRefusalsKeepTheirWords(t *testing.T) {
	s := config.Default()
	s.DataDir = "data"
	disk := faultfs.New(crashfs.New())
	disk.Fail(faultfs.Rule{Kinds: vfs.OpMkdir, Err: syscall.EACCES})
	_, err := openStorage(t.Context(), s, gather(s, []Option{WithFS(disk, t.TempDir())}))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
	full := &fs.PathError{Op: "mkdir", Path: "data", Err: syscall.ENOSPC}
	if got := explainAccess(full, s, disk); !errors.Is(got, full) {
		t.Error(got)
	}
}

// FX-31, with the system's own refusal.
func TestTheSystemsRefusalStopsTheStartWithALine(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("root, or a user of Windows, may write everywhere; the tests of the image run this as a user")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	s := config.Default()
	s.DataDir = dir
	_, err := openStorage(t.Context(), s, gather(s, nil))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+" is not writable") {
		t.Error(err)
	}
}
