package broker

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// defaultMemory stands in for the limit of a process that has none.
const defaultMemory = 1 << 30

// memoryLimitFiles are where the kernel tells a process the memory limit of
// its control group, version 2 first.
var memoryLimitFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// MemoryLimit is the memory limit of this process's control group in bytes, or
// 0 if it has none.
func MemoryLimit() int64 {
	for _, name := range memoryLimitFiles {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		return parseMemoryLimit(string(b))
	}
	return 0
}

// parseMemoryLimit reads a limit file: "max", or a number that is close to
// 2^63 where there is no limit (version 1).
func parseMemoryLimit(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}

// requestMemory is the bound on requests in memory (FX-8): as set, or a
// quarter of the control group's limit, or of 1 GiB.
func requestMemory(set, limit int64) int64 {
	if set > 0 {
		return set
	}
	if limit <= 0 {
		limit = defaultMemory
	}
	return limit / 4
}
