package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
)

// A problem is a setting whose value has the right type but makes no sense.
type problem struct{ name, text string }

// Validate checks settings that were filled in by a program. The error joins
// one line per mistake.
func (s *Settings) Validate() error {
	var all []error
	for _, p := range s.problems() {
		all = append(all, errors.New(p.name+": "+p.text))
	}
	return errors.Join(all...)
}

// problems are all of them, in the order of the settings.
func (s *Settings) problems() []problem {
	var all []problem
	add := func(name string, err error) {
		if err != nil {
			all = append(all, problem{name, err.Error()})
		}
	}
	if s.DataDir == "" {
		add("DATA_DIR", errors.New("must not be empty"))
	}
	listeners, err := ParseListeners(s.Listeners)
	add("LISTENERS", err)
	add("ADVERTISED_LISTENERS", s.advertisedProblem(listeners))
	if s.HostEndpoint != "" {
		_, _, err := ParseHostPort(s.HostEndpoint)
		add("HOST_ENDPOINT", err)
	}
	if s.HTTPListen != "off" {
		add("HTTP_LISTEN", checkHostPort(s.HTTPListen, false))
	}
	add("NODE_ID", within(int64(s.NodeID), 0, math.MaxInt32))
	add("CLUSTER_ID", checkClusterID(s.ClusterID))
	add("SEGMENT_BYTES", within(s.SegmentBytes, 1<<20, math.MaxInt32))
	add("SEGMENT_MS", within(s.SegmentMs, 1, math.MaxInt64))
	add("INDEX_INTERVAL_BYTES", within(int64(s.IndexIntervalBytes), 0, math.MaxInt32))
	add("RETENTION_BYTES", within(s.RetentionBytes, -1, math.MaxInt64))
	add("RETENTION_MS", within(s.RetentionMs, -1, math.MaxInt64))
	add("CLEANER_MAX_KEYS", within(int64(s.CleanerMaxKeys), 1, mostKeys))
	add("CLEANER_BYTES_PER_SECOND", within(s.CleanerBytesPerSecond, 0, math.MaxInt64))
	if s.FsyncInterval < 0 {
		add("FSYNC_INTERVAL", errors.New("must not be negative"))
	}
	add("NUM_PARTITIONS", within(int64(s.NumPartitions), 1, 10000))
	add("MESSAGE_MAX_BYTES", within(int64(s.MessageMaxBytes), 0, math.MaxInt32))
	add("SOCKET_REQUEST_MAX_BYTES", within(int64(s.SocketRequestMaxBytes), 1, math.MaxInt32))
	add("REQUEST_MEMORY_BYTES", within(s.RequestMemoryBytes, 0, math.MaxInt64))
	add("GROUP_INITIAL_REBALANCE_DELAY_MS", within(int64(s.GroupInitialRebalanceDelayMs), 0, math.MaxInt32))
	add("GROUP_MIN_SESSION_TIMEOUT_MS", within(int64(s.GroupMinSessionTimeoutMs), 0, math.MaxInt32))
	add("GROUP_MAX_SESSION_TIMEOUT_MS", within(int64(s.GroupMaxSessionTimeoutMs), 0, math.MaxInt32))
	if s.GroupMinSessionTimeoutMs > s.GroupMaxSessionTimeoutMs {
		add("GROUP_MAX_SESSION_TIMEOUT_MS", errors.New("must not be less than GROUP_MIN_SESSION_TIMEOUT_MS"))
	}
	add("GROUP_MAX_SIZE", within(int64(s.GroupMaxSize), 1, math.MaxInt32))
	add("OFFSETS_RETENTION_MINUTES", within(int64(s.OffsetsRetentionMinutes), 1, math.MaxInt32))
	add("OFFSET_METADATA_MAX_BYTES", within(int64(s.OffsetMetadataMaxBytes), 0, math.MaxInt32))
	add("TRANSACTION_MAX_TIMEOUT_MS", within(int64(s.TransactionMaxTimeoutMs), 1, math.MaxInt32))
	add("TRANSACTIONAL_ID_EXPIRATION_MS", within(s.TransactionalIDExpirationMs, 1, math.MaxInt32))
	add("LOG_LEVEL", oneOf(s.LogLevel, "debug", "info", "warn", "error"))
	add("LOG_FORMAT", oneOf(s.LogFormat, "text", "json"))
	if len(all) == 0 { // the topics' configs are checked against the other settings
		_, err = ParseTopics(s)
		add("TOPICS", err)
	} else if _, err = parseTopics(s.Topics); err != nil {
		add("TOPICS", err)
	}
	return all
}

func within(v, low, high int64) error {
	switch {
	case v < low:
		return fmt.Errorf("must be at least %d", low)
	case v > high:
		return fmt.Errorf("must be no more than %d", high)
	}
	return nil
}

func oneOf(v string, values ...string) error {
	if slices.Contains(values, v) {
		return nil
	}
	return errors.New("must be one of: " + strings.Join(values, ", "))
}

// checkClusterID accepts what Kafka's Uuid prints, and any other 22 characters
// of its alphabet, as the compose files of other images have them.
func checkClusterID(id string) error {
	if id == "" {
		return nil
	}
	legal := func(c byte) bool {
		return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	for i := range len(id) {
		if !legal(id[i]) {
			return fmt.Errorf("character %q is not allowed", id[i])
		}
	}
	if len(id) != 22 {
		return fmt.Errorf("has %d characters", len(id))
	}
	return nil
}

func checkHostPort(v string, needHost bool) error {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		return errors.New("not host:port")
	}
	if needHost && host == "" {
		return errors.New("the host is missing")
	}
	if err := checkHost(host); err != nil {
		return err
	}
	return checkPort(port, needHost)
}

func checkPort(port string, fixed bool) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	if fixed && n == 0 {
		return errors.New("port 0 can't be told to clients")
	}
	return nil
}
