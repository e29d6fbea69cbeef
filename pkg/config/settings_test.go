package config

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// FX-1: the one struct gives every setting a name, a default that is valid, and a line of documentation.
func TestEverySettingIsDocumentedAndItsDefaultValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for _, s := range settings {
		if s.doc == "" || s.allowed == "" && s.typ.Kind() != reflect.Bool {
			t.Errorf("%s: no doc or no allowed values", s.name)
		}
		if s.def != "" {
			if _, err := s.check(s.def); err != nil {
				t.Errorf("%s: default: %v", s.name, err)
			}
		}
	}
	if n := reflect.TypeFor[Settings]().NumField() - 5; len(settings) != n {
		t.Errorf("%d settings of %d fields", len(settings), n)
	}
}

// The defaults of fixture.md section 1.
func TestDefaults(t *testing.T) {
	s := Default()
	want := &Settings{DataDir: "./data", Listeners: "PLAINTEXT://127.0.0.1:9092", AdvertisedListeners: "auto", HTTPListen: "127.0.0.1:9080",
		NodeID: 1, SegmentBytes: 128 << 20, SegmentMs: 7 * 24 * 3600 * 1000, IndexIntervalBytes: 4096, RetentionBytes: -1, RetentionMs: -1, CleanerMaxKeys: 1_000_000,
		FsyncInterval: 500 * time.Millisecond, AcksAllSync: true, AutoCreateTopics: true, NumPartitions: 1, MessageMaxBytes: 1048588,
		SocketRequestMaxBytes: 100 << 20, GroupInitialRebalanceDelayMs: 20, GroupMinSessionTimeoutMs: 100, GroupMaxSessionTimeoutMs: 1800000,
		GroupMaxSize: math.MaxInt32, OffsetsRetentionMinutes: 7 * 24 * 60, OffsetMetadataMaxBytes: 4096, TransactionMaxTimeoutMs: 900_000, TransactionalIDExpirationMs: 7 * 24 * 3600 * 1000, LogLevel: "info", LogFormat: "text"}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v\nwant %+v", s, want)
	}
}

func TestGivenKnowsWhatWasSet(t *testing.T) {
	s, _, err := Parse([]string{"--num-partitions", "1"}, []string{"DOZE_KAFKA_NODE_ID=1"})
	if err != nil {
		t.Fatal(err)
	}
	s.SegmentMs = 5 // by a program
	var got []string
	for _, d := range settings {
		if s.given(d.name) {
			got = append(got, d.name)
		}
	}
	if want := []string{"NODE_ID", "SEGMENT_MS", "NUM_PARTITIONS"}; !slices.Equal(got, want) {
		t.Errorf("given: %s", strings.Join(got, " "))
	}
}

func TestTheSessionTimeoutsOfGroupsMustBeARange(t *testing.T) {
	s := Default()
	s.GroupMinSessionTimeoutMs, s.GroupMaxSessionTimeoutMs = 2000, 1000
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "must not be less than GROUP_MIN_SESSION_TIMEOUT_MS") {
		t.Error(err)
	}
}
