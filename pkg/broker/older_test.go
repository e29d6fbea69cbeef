package broker_test

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// inner are settings whose data directory lies in a directory of its own.
func inner(t *testing.T) (s *config.Settings, inside, beside string) {
	t.Helper()
	s = local(t)
	root := s.DataDir
	s.DataDir = filepath.Join(root, "data")
	return s, filepath.Join(s.DataDir, "meta.db"), filepath.Join(root, "meta.db")
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// ST-3: a meta.db beside the data directory, where older layouts had it, is used where it is, and the start says how to move it in.
func TestMetaDBBesideTheDataDirectoryIsUsed(t *testing.T) {
	s, inside, beside := inner(t)
	b := start(t, s)
	produce(t, b, "kept")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	rename(t, inside, beside)
	var log bytes.Buffer
	b = start(t, s, broker.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	wantRecords(t, b, "kept")
	produce(t, b, "more")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), beside) || !strings.Contains(log.String(), inside) {
		t.Errorf("no notice:\n%s", &log)
	}
	if _, err := os.Stat(inside); err == nil {
		t.Error("another one was made in the data directory")
	}
	rename(t, beside, inside) // as the notice says
	log.Reset()
	b = start(t, s, broker.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	wantRecords(t, b, "kept", "more")
	if strings.Contains(log.String(), beside) {
		t.Errorf("told again:\n%s", &log)
	}
}

// ST-3: with one in the data directory and one beside it nobody knows which is meant; with --meta-db it is known.
func TestTwoMetaDBsAreRefused(t *testing.T) {
	s, inside, beside := inner(t)
	b := start(t, s)
	produce(t, b, "kept")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := startError(t, s); !strings.Contains(got, inside) || !strings.Contains(got, beside) || strings.Contains(got, "\n") {
		t.Error(got)
	}
	s.MetaDB = inside
	wantRecords(t, start(t, s), "kept")
}

// ST-3: another program's meta.db, or whatever else has that name, is ignored.
func TestOthersFilesBesideTheDataDirectoryAreIgnored(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"text":      func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("text ", 5000)), 0o600) },
		"nothing":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"bbolt": func(path string) error {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				return err
			}
			return db.Close()
		},
	} {
		s, inside, beside := inner(t)
		if err := put(beside); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(beside)
		b := start(t, s)
		produce(t, b, "kept")
		if _, err := os.Stat(inside); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(beside); !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// ST-3: a meta.db beside the data directory that another broker has open is an error, not a hang.
func TestALockedMetaDBBesideTheDataDirectory(t *testing.T) {
	s, _, beside := inner(t)
	db, err := bbolt.Open(beside, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := startError(t, s); !strings.Contains(got, beside+": another broker has it open") {
		t.Error(got)
	}
}

// ST-4: a directory of a format that did not sync sealed segments is checked whole, once: what is torn in
// the middle of the log is cut, also after what that broker took for a clean stop.
func TestADirectoryOfAnOlderFormatIsCheckedWholeOnce(t *testing.T) {
	s := local(t)
	s.SegmentBytes = 1 << 20
	b := start(t, s)
	var values []string // one fills a segment
	for i := range 4 {
		noise := make([]byte, 600_000)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(noise) // it never fails
		values = append(values, string(noise))
		produce(t, b, values[i])
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(s.DataDir, "meta.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint32(nil, 0))
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(s.DataDir, "demo-0", "00000000000000000000.log")
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	if err := os.WriteFile(first, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logged := broker.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
	b = start(t, s, logged)
	if b.StartedClean() {
		t.Error("its clean stop counts")
	}
	wantRecords(t, b, values[1:]...)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "older format") || !strings.Contains(log.String(), "has been cut off") {
		t.Errorf("nothing is told:\n%s", &log)
	}
	if info, err := os.Stat(first); err != nil || info.Size() >= int64(len(content)) {
		t.Errorf("the torn batch is there: %v, %v", info, err)
	}
	log.Reset()
	if b = start(t, s, logged); !b.StartedClean() || strings.Contains(log.String(), "older format") {
		t.Errorf("checked a second time:\n%s", &log)
	}
}
