package vfs_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

func blocks(t *testing.T, name string) int64 {
	t.Helper()
	fi, err := os.Stat(name)
	ok(t, err)
	return fi.Sys().(*syscall.Stat_t).Blocks
}

// A segment is allocated ahead, and trimmed at roll and close.
func TestTruncateToItsSizeGivesAllocatedBlocksBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f := open(t, vfs.OS, name, os.O_RDWR|os.O_CREATE)
	_, err := f.WriteAt([]byte("abc"), 0)
	ok(t, err)
	ok(t, f.Allocate(0, 1<<20))
	if blocks(t, name) < 1<<20/512 {
		t.Skip("this file system allocates nothing ahead")
	}
	size(t, f, 3)
	ok(t, f.Truncate(3))
	if n := blocks(t, name); n > 64 {
		t.Errorf("%d blocks are still allocated", n)
	}
	content(t, f, "abc")
}

// A failing system call names itself and its file, and unwraps to the errno.
func TestErrorsUnwrapToTheSystems(t *testing.T) {
	f := open(t, vfs.OS, os.DevNull, os.O_RDWR)
	err := f.Allocate(0, 1<<20)
	is(t, err, syscall.ENODEV)
	if pe, isPath := errors.AsType[*fs.PathError](err); !isPath || pe.Path != os.DevNull || pe.Op != "fallocate" {
		t.Errorf("%#v", err)
	}
	full := open(t, vfs.OS, "/dev/full", os.O_RDWR)
	_, err = full.WriteAt([]byte("x"), 0)
	is(t, err, syscall.ENOSPC)
}

func TestFdIsTheFilesDescriptor(t *testing.T) {
	f := open(t, vfs.OS, filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE)
	_, err := f.WriteAt([]byte("abc"), 0)
	ok(t, err)
	fd, has := f.Fd()
	equal(t, has, true)
	b := make([]byte, 3)
	_, err = syscall.Pread(int(fd), b, 0)
	ok(t, err)
	equal(t, string(b), "abc")
}

// ST-4: the lock of a process that was killed is free at once.
func TestLockEndsWithItsProcess(t *testing.T) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		l, err := vfs.OS.Lock(name)
		ok(t, err)
		_, _ = os.Stdout.WriteString("locked\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		runtime.KeepAlive(l)
		return
	}
	name := filepath.Join(t.TempDir(), "LOCK")
	child := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$")
	child.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	out, err := child.StdoutPipe()
	ok(t, err)
	_, err = child.StdinPipe() // open as long as this process lives
	ok(t, err)
	ok(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	_, lockErr := vfs.OS.Lock(name)
	ok(t, child.Process.Kill())
	_ = child.Wait() // killed
	ok(t, err)
	equal(t, line, "locked\n")
	is(t, lockErr, vfs.ErrLocked)
	l, err := vfs.OS.Lock(name)
	ok(t, err)
	ok(t, l.Close())
}
