package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A translation makes a setting of the first of some properties that is given.
type translation struct {
	setting string
	from    []source
}

// A source is one property, and what its value is as the setting's.
type source struct {
	name string
	to   func(string) (string, error)
}

func asIs(v string) (string, error) { return v, nil }

// times is a number of another unit; a negative one is no limit, as Kafka has it.
func times(factor int64) func(string) (string, error) {
	return func(v string) (string, error) {
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case err != nil:
			return "", errors.New("not a whole number")
		case n < 0:
			return "-1", nil
		case n > math.MaxInt64/factor:
			return number(math.MaxInt64), nil
		}
		return number(n * factor), nil
	}
}

const (
	minuteMs = 60 * 1000
	hourMs   = 60 * minuteMs
)

// bytesPerSecond is a rate as a whole number, 0 where it is none that could be reached; Kafka's is a double.
func bytesPerSecond(v string) (string, error) {
	rate, ok := parseDouble(v)
	switch {
	case !ok || !(rate > 0):
		return "", errors.New("not a number of bytes above 0")
	case rate >= math.MaxInt64:
		return "0", nil
	}
	return number(max(1, int64(rate))), nil
}

const (
	leastBuffer = 1<<20 + 1   // Kafka does not start with less (KafkaConfig.validateValues)
	keyBytes    = 30          // that a key takes in the memory of a compaction, about
	mostKeys    = 100_000_000 // the bound of CLEANER_MAX_KEYS
)

// keysIn are the keys that compaction has room for in so many bytes.
func keysIn(v string) (string, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return "", errors.New("not a whole number")
	}
	if n < leastBuffer {
		return "", fmt.Errorf("must be at least %d bytes, as in Kafka", leastBuffer)
	}
	return number(min(n/keyBytes, mostKeys)), nil
}

// notNegative leaves out the value that stands for a generated id.
func notNegative(v string) (string, error) {
	if strings.HasPrefix(v, "-") {
		return "", nil
	}
	return v, nil
}

// firstOf is the first item of a list that is not empty.
func firstOf(v string) (string, error) {
	first, _, _ := strings.Cut(strings.TrimLeft(v, ", "), ",")
	return strings.TrimSpace(first), nil
}

func only(name, setting string) translation { return translation{setting, []source{{name, asIs}}} }

// translations are the properties with a setting of their own; listeners are
// in kafkaListeners, and the defaults of topics that have no setting in topicDefaults.
var translations = []translation{
	{"CLUSTER_ID", []source{{clusterIDProperty, asIs}, {"kraft.cluster.id", asIs}}},
	{"NODE_ID", []source{{"node.id", notNegative}, {"broker.id", notNegative}}},
	{"DATA_DIR", []source{{"log.dirs", firstOf}, {"log.dir", firstOf}}},
	{"SEGMENT_MS", []source{{"log.roll.ms", asIs}, {"log.roll.hours", times(hourMs)}}},
	{"RETENTION_MS", []source{{"log.retention.ms", times(1)}, {"log.retention.minutes", times(minuteMs)}, {"log.retention.hours", times(hourMs)}}},
	{"RETENTION_BYTES", []source{{"log.retention.bytes", times(1)}}},
	only("log.segment.bytes", "SEGMENT_BYTES"),
	only("log.index.interval.bytes", "INDEX_INTERVAL_BYTES"),
	only("auto.create.topics.enable", "AUTO_CREATE_TOPICS"),
	only("num.partitions", "NUM_PARTITIONS"),
	only("message.max.bytes", "MESSAGE_MAX_BYTES"),
	only("socket.request.max.bytes", "SOCKET_REQUEST_MAX_BYTES"),
	only("group.initial.rebalance.delay.ms", "GROUP_INITIAL_REBALANCE_DELAY_MS"),
	only("group.min.session.timeout.ms", "GROUP_MIN_SESSION_TIMEOUT_MS"),
	only("group.max.session.timeout.ms", "GROUP_MAX_SESSION_TIMEOUT_MS"),
	only("group.max.size", "GROUP_MAX_SIZE"),
	only("offsets.retention.minutes", "OFFSETS_RETENTION_MINUTES"),
	only("transaction.max.timeout.ms", "TRANSACTION_MAX_TIMEOUT_MS"),
	only("transactional.id.expiration.ms", "TRANSACTIONAL_ID_EXPIRATION_MS"),
	only("offset.metadata.max.bytes", "OFFSET_METADATA_MAX_BYTES"),
	{"CLEANER_BYTES_PER_SECOND", []source{{"log.cleaner.io.max.bytes.per.second", bytesPerSecond}}},
	{"CLEANER_MAX_KEYS", []source{{"log.cleaner.dedupe.buffer.size", keysIn}}},
}

// kafkaGiven is what Kafka's properties come to.
type kafkaGiven struct {
	settings map[string]givenValue
	topics   map[string]string // see Settings.topicDefaults
	warnings []string
	mistakes []error
}

// fromKafka translates properties (FX-3); of a name that is there twice the last counts.
func fromKafka(all []property) kafkaGiven {
	byName := map[string]property{}
	for _, p := range all {
		byName[p.name] = p
	}
	g := kafkaGiven{settings: map[string]givenValue{}, topics: map[string]string{}}
	used := map[string]bool{}
	for _, t := range translations {
		taken := false
		for _, from := range t.from {
			p, ok := byName[from.name]
			used[from.name] = true
			if !ok || taken || p.value == "" {
				continue
			}
			v, err := from.to(p.value)
			if err != nil {
				g.mistakes = append(g.mistakes, fmt.Errorf("%s=%s: %w", p.by, p.value, err))
			}
			if taken = v != ""; taken {
				g.settings[t.setting] = givenValue{p.by, v}
			}
		}
	}
	g.listeners(byName, used)
	g.topicDefaults(byName, used)
	g.warn(byName, used)
	return g
}

// topicDefaults takes the properties that are defaults of topics and have no setting.
func (g *kafkaGiven) topicDefaults(byName map[string]property, used map[string]bool) {
	for _, hours := range []string{"log.roll.jitter.hours"} {
		if p, ok := byName[hours]; ok {
			used[hours] = true
			if v, err := times(hourMs)(p.value); err == nil {
				g.topics["log.roll.jitter.ms"] = v
			}
		}
	}
	for i := range topicConfigs {
		c := &topicConfigs[i]
		if len(c.broker) == 0 || c.setting != "" {
			continue
		}
		p, ok := byName[c.broker[0].name]
		used[c.broker[0].name] = true
		if !ok || p.value == "" && c.typ != TypeList {
			continue
		}
		if _, err := c.parseProperty(p.value); err != nil {
			g.mistakes = append(g.mistakes, fmt.Errorf("%s=%s: %w", p.by, p.value, err))
			continue
		}
		g.topics[p.name] = p.value
	}
}

// warn names, in one line, what was asked for and is not there.
func (g *kafkaGiven) warn(byName map[string]property, used map[string]bool) {
	var names []string
	for _, p := range byName {
		if !used[p.name] && !silent(p) {
			names = append(names, p.by)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		g.warnings = append(g.warnings, "these Kafka properties have no effect here: "+strings.Join(names, ", "))
	}
	if dirs, ok := byName["log.dirs"]; ok && strings.Contains(strings.Trim(dirs.value, ", "), ",") {
		g.warnings = append(g.warnings, dirs.by+"="+dirs.value+": there is one data directory, the first of these")
	}
}
