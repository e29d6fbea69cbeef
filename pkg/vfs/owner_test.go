package vfs_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

func TestOwnerIsWhoeverMadeTheFile(t *testing.T) {
	fi, err := vfs.OS.Stat(t.TempDir())
	ok(t, err)
	uid, _, known := vfs.Owner(fi)
	equal(t, known, runtime.GOOS != "windows")
	if known {
		equal(t, uid, os.Getuid())
	}
}

func TestFileInMemoryHasNoOwner(t *testing.T) {
	disk := crashfs.New()
	ok(t, disk.Mkdir("d", 0o755))
	fi, err := disk.Stat("d")
	ok(t, err)
	_, _, known := vfs.Owner(fi)
	equal(t, known, false)
}
