package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// shutdownMark is the file that says that the last stop flushed everything
// (ST-50). Its content lists what that does not hold for.
const shutdownMark = "clean-shutdown"

// markContent is the file's JSON.
type markContent struct {
	Version int `json:"version"`
	// Unverified are the partitions (as their directories are named) that
	// were not opened since an unclean stop before: nothing has checked them.
	Unverified []string `json:"unverified,omitempty"`
}

// A lastStop is what the mark says of the stop before this start.
type lastStop struct {
	clean      bool
	unverified map[kafka.TopicPartition]bool
}

// covers says whether a partition's directory was flushed by the last stop.
func (l *lastStop) covers(tp kafka.TopicPartition) bool { return l.clean && !l.unverified[tp] }

// takeMark reads the mark and removes it, durably: from here on a crash must
// find no mark, or the next start would trust what was never flushed (ST-54).
// A mark that can't be read is no mark.
func takeMark(fsys vfs.FS, dir string) (*lastStop, error) {
	name := filepath.Join(dir, shutdownMark)
	b, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &lastStop{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	last := parseMark(b)
	if err := fsys.Remove(name); err != nil {
		return nil, fmt.Errorf("remove %s: %w", name, err)
	}
	// Without this the name could come back after a power cut.
	if err := fsys.SyncDir(dir); err != nil {
		return nil, fmt.Errorf("sync %s: %w", dir, err)
	}
	return last, nil
}

func parseMark(b []byte) *lastStop {
	var c markContent
	if err := json.Unmarshal(b, &c); err != nil || c.Version != 1 {
		return &lastStop{}
	}
	last := &lastStop{clean: true, unverified: make(map[kafka.TopicPartition]bool, len(c.Unverified))}
	for _, s := range c.Unverified {
		tp, ok := parsePartition(s)
		if !ok {
			return &lastStop{}
		}
		last.unverified[tp] = true
	}
	return last
}

func parsePartition(s string) (kafka.TopicPartition, bool) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return kafka.TopicPartition{}, false
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	return kafka.TopicPartition{Topic: s[:i], Partition: int32(n)}, err == nil && n >= 0
}

// putMark writes the mark, as the last thing of a stop that flushed everything.
func putMark(fsys vfs.FS, dir string, unverified []kafka.TopicPartition) error {
	c := markContent{Version: 1}
	for _, tp := range unverified {
		c.Unverified = append(c.Unverified, tp.String())
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return vfs.WriteFileSync(fsys, filepath.Join(dir, shutdownMark), append(b, '\n'), 0o644)
}
