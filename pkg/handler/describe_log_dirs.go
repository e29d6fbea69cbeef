package handler

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// describeLogDirs tells the sizes of partitions in the one data directory, and
// how full its volume is (ReplicaManager.describeLogDirs); -1 is a volume that
// can't tell. A null list is all topics. Partitions that there are not are left
// out. It opens no log.
func (h *Handler) describeLogDirs(_ context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeLogDirsRequest)
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	resp.SetVersion(req.Version)
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = h.Settings.DataDir
	if abs, err := filepath.Abs(dir.Dir); err == nil {
		dir.Dir = abs
	}
	if total, usable, err := h.Registry.Space(); err == nil {
		dir.TotalBytes, dir.UsableBytes = total, usable
	}
	asked := make(map[string][]int32, len(body.Topics))
	for i := range body.Topics {
		name := body.Topics[i].Topic
		asked[name] = append(asked[name], body.Topics[i].Partitions...)
	}
	for _, t := range h.Registry.All() {
		partitions := presentOf(t, asked[t.Name()])
		if body.Topics == nil {
			partitions = allOf(t)
		}
		out := kmsg.NewDescribeLogDirsResponseDirTopic()
		out.Topic = t.Name()
		for _, partition := range partitions {
			size, err := t.Size(partition)
			if err != nil {
				h.Logger.Error("the size of a partition can't be told", "topic", t.Name(), "partition", partition, "err", err)
				dir.ErrorCode, dir.Topics = kerr.KafkaStorageError.Code, nil
				resp.Dirs = append(resp.Dirs, dir)
				return resp
			}
			p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			p.Partition, p.Size = partition, size
			out.Partitions = append(out.Partitions, p)
		}
		if len(out.Partitions) > 0 {
			dir.Topics = append(dir.Topics, out)
		}
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp
}

// allOf are all partitions of a topic.
func allOf(t *topic.Topic) []int32 {
	all := make([]int32, t.Partitions())
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// presentOf are those partitions that a topic has, in order and each once.
func presentOf(t *topic.Topic, asked []int32) []int32 {
	slices.Sort(asked)
	return slices.DeleteFunc(slices.Compact(asked), func(p int32) bool { return p < 0 || p >= t.Partitions() })
}
