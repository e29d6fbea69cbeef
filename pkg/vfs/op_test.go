package vfs_test

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

func TestOpReadsAsOneLine(t *testing.T) {
	for want, op := range map[string]vfs.Op{
		"write d/0.log at 512+100": {Kind: vfs.OpWrite, Name: "d/0.log", Offset: 512, Length: 100},
		"truncate 0.log to 7":      {Kind: vfs.OpTruncate, Name: "0.log", Offset: 7},
		"rename a to b":            {Kind: vfs.OpRename, Name: "a", To: "b"},
		"syncdir d":                {Kind: vfs.OpSyncDir, Name: "d"},
	} {
		equal(t, op.String(), want)
	}
	equal(t, (vfs.OpOpen | vfs.OpSync | vfs.OpClose).String(), "open|sync|close")
	equal(t, vfs.Kind(0).String(), "")
}
