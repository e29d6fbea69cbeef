package vfs_test

import (
	"path/filepath"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

func TestSpaceOfAVolume(t *testing.T) {
	dir := t.TempDir()
	total, usable, err := vfs.Space(dir)
	if err != nil || usable <= 0 || total < usable {
		t.Errorf("%d of %d bytes, %v", usable, total, err)
	}
	if _, _, err := vfs.Space(filepath.Join(dir, "none")); err == nil {
		t.Error("of a directory that there is not")
	}
}
