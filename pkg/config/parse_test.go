package config

import (
	"strings"
	"testing"
	"time"
)

// FX-1: flag beats environment beats default.
func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	s, _, err := Parse(
		[]string{"--fsync-interval=2s", "--strict-replication", "--acks-all-sync", "false", "--segment-bytes", "1MiB", "--retention-ms", "-1"},
		[]string{"DOZE_KAFKA_FSYNC_INTERVAL=1s", "DOZE_KAFKA_NODE_ID=7", "DOZE_KAFKA_LOG_LEVEL=", "HOME=/x", "DOZE_KAFKA_SEGMENT_BYTES=zzz"})
	if err != nil {
		t.Fatal(err)
	}
	if s.FsyncInterval != 2*time.Second || s.NodeID != 7 || !s.StrictReplication || s.AcksAllSync || s.SegmentBytes != 1<<20 ||
		s.LogLevel != "info" || s.DataDir != "./data" || s.RetentionMs != -1 || len(s.Warnings) != 0 {
		t.Errorf("%+v", s)
	}
}

// FX-2: all mistakes at once, one line each: the name as given, the value, what is allowed.
func TestAllMistakesAreToldOneLineEach(t *testing.T) {
	_, _, err := Parse(
		[]string{"--fsync-intervall", "2s", "--node-id", "x", "--log-level=loud", "--num-partitions", "0", "stray", "--acks-all-sync=yes", "--topics"},
		[]string{"DOZE_KAFKA_FSYNC_INTERVAL=500", "DOZE_KAFKA_SEGMENT_BYTES=1MB", "DOZE_KAFKA_LISTENERS=SSL://:9092",
			"DOZE_KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://0.0.0.0:9092", "DOZE_KAFKA_CLUSTER_ID=short", "DOZE_KAFKA_RETENTION_MS=-5",
			"DOZE_KAFKA_MESSAGE_MAX_BYTES=4GiB"})
	want := []string{
		"--fsync-intervall: unknown flag; did you mean --fsync-interval?",
		"stray: not a flag; every setting is --name value, see --help",
		"--topics: needs a value (allowed: name[:partitions[:config=value[;config=value]]], several by commas)",
		"--node-id=x: not a whole number (allowed: 0 to 2147483647)",
		"DOZE_KAFKA_SEGMENT_BYTES=1MB: want a whole number of bytes, or one with the suffix KiB, MiB or GiB (allowed: 1MiB to 2147483647)",
		"DOZE_KAFKA_FSYNC_INTERVAL=500: a duration needs a unit, such as 500ms (allowed: a duration such as 500ms or 2s; 0 turns the timer off)",
		"--acks-all-sync=yes: want true or false (allowed: true, false)",
		"DOZE_KAFKA_MESSAGE_MAX_BYTES=4GiB: too large or too small (allowed: 0 to 2147483647)",
		"DOZE_KAFKA_LISTENERS=SSL://:9092: SSL: TLS and SASL are not supported (allowed: NAME://host:port, several by commas; port 0 takes a free one)",
		`DOZE_KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://0.0.0.0:9092: PLAINTEXT: clients can't connect to the host "0.0.0.0" (allowed: auto, or NAME://host:port, several by commas, each NAME one of the listeners)`,
		"DOZE_KAFKA_CLUSTER_ID=short: has 5 characters (allowed: 22 characters of A-Z, a-z, 0-9, - and _)",
		"DOZE_KAFKA_RETENTION_MS=-5: must be at least -1 (allowed: milliseconds, or -1 for no limit)",
		"--num-partitions=0: must be at least 1 (allowed: 1 to 10000)",
		"--log-level=loud: must be one of: debug, info, warn, error",
	}
	if err == nil {
		t.Fatal("no error")
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// FX-2: a value with line breaks is told in one line.
func TestAMistakeIsOneLineWhateverTheValue(t *testing.T) {
	_, _, err := Parse([]string{"--log-level", "a\nb"}, []string{"DOZE_KAFKA_TOPICS=a\r\nb:1"})
	want := `--log-level=a\nb: must be one of: debug, info, warn, error` + "\n" +
		`DOZE_KAFKA_TOPICS=a\r\nb:1: topic "a\r\nb:1": 'a\r\nb' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'` +
		` (allowed: name[:partitions[:config=value[;config=value]]], several by commas)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// FX-2: a flag with an empty value, as of a shell variable that is not set, is
// no default; where the default is empty it takes back what the environment gave.
func TestAnEmptyFlag(t *testing.T) {
	_, _, err := Parse([]string{"--data-dir", "", "--listeners="}, nil)
	want := "--data-dir=: must not be empty (allowed: a directory)\n" +
		"--listeners=: must not be empty (allowed: NAME://host:port, several by commas; port 0 takes a free one)"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	s, _, err := Parse([]string{"--topics="}, []string{"DOZE_KAFKA_TOPICS=a", "DOZE_KAFKA_DATA_DIR="})
	if err != nil || s.Topics != "" || s.DataDir != "./data" {
		t.Errorf("%+v, %v", s, err)
	}
}

// FX-2: a mistyped variable is not silent.
func TestUnknownVariableIsWarnedOf(t *testing.T) {
	s, _, err := Parse(nil, []string{"DOZE_KAFKA_TOPIC=a", "DOZE_KAFKA_ZZZZZZ=1"})
	if err != nil || len(s.Warnings) != 2 ||
		s.Warnings[0] != "DOZE_KAFKA_TOPIC: no setting of this name, it has no effect; did you mean DOZE_KAFKA_TOPICS?" ||
		s.Warnings[1] != "DOZE_KAFKA_ZZZZZZ: no setting of this name, it has no effect" {
		t.Errorf("%q, %v", s.Warnings, err)
	}
}

// FX-2, FX-5: a topic that can't be made is a mistake at start.
func TestTopicsAreCheckedAtStart(t *testing.T) {
	_, _, err := Parse(nil, []string{"DOZE_KAFKA_TOPICS=a:0,b:1:foo=1"})
	want := `DOZE_KAFKA_TOPICS=a:0,b:1:foo=1: topic "a:0": partitions "0": want a number from 1 to 10000; ` +
		`topic "b": Unknown topic config name: foo (allowed: name[:partitions[:config=value[;config=value]]], several by commas)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--topics=a:1:x=y", "DOZE_KAFKA_LISTENERS=A://[::1]:0,,B://x:1")
	f.Fuzz(func(t *testing.T, arg, variable string) {
		s, _, err := Parse(strings.Fields(arg), []string{variable})
		if err == nil && s != nil && s.Validate() != nil {
			t.Fatalf("%q %q: Parse accepts what Validate refuses: %v", arg, variable, s.Validate())
		}
	})
}
