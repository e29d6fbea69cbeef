package handler

import (
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

func TestDescribeLogDirs(t *testing.T) {
	k := newKitOn(t, vfs.OS, nil, func(s *config.Settings) { s.DataDir = "some" })
	k.create("a", 3)
	k.create("b", 1)
	k.append("a", 1, "x")
	log, err := k.Handler.log("a", 1)
	check(t, err)
	want := log.Size()
	k.eachVersion(kmsg.DescribeLogDirs, func(t *testing.T, version int16) {
		k.restart() // its log is closed
		req := kmsg.NewPtrDescribeLogDirsRequest()
		for asked, topics := range [][]kmsg.DescribeLogDirsRequestTopic{nil, {}, {{Topic: "a", Partitions: []int32{1, 7, -1, 1}}, {Topic: "none", Partitions: []int32{0}}, {Topic: "b"}}} {
			req.Topics = topics
			dirs := ask[*kmsg.DescribeLogDirsResponse](k, version, req).Dirs
			if len(dirs) != 1 || dirs[0].ErrorCode != 0 || !filepath.IsAbs(dirs[0].Dir) || len(dirs[0].Topics) != []int{2, 0, 1}[asked] {
				t.Fatalf("%+v", dirs)
			}
			if version >= 4 && (dirs[0].UsableBytes <= 0 || dirs[0].TotalBytes < dirs[0].UsableBytes) {
				t.Fatalf("%+v", dirs[0])
			}
			for _, out := range dirs[0].Topics {
				for _, p := range out.Partitions {
					if size := map[bool]int64{true: want}[out.Topic == "a" && p.Partition == 1]; p.Size != size || p.OffsetLag != 0 || p.IsFuture {
						t.Fatalf("%s: %+v, want %d bytes", out.Topic, p, size)
					}
				}
				if n := map[string]int{"a": 3, "b": 1}[out.Topic]; asked == 0 && len(out.Partitions) != n || asked == 2 && len(out.Partitions) != 1 {
					t.Fatalf("%+v", out)
				}
			}
		}
		if k.Registry.OpenLogs() != 0 {
			t.Fatal("a log was opened")
		}
	})
}
