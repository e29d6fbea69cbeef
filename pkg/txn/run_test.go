package txn

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A waitClock tells for how long Run has itself woken, and wakes it at once.
type waitClock struct{ waits chan time.Duration }

func (waitClock) Now() time.Time { return time.UnixMilli(1_000_000) }

func (c waitClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	select {
	case c.waits <- d:
	default:
	}
	return clock.System.AfterFunc(0, f)
}

// TX-7, ST-60: while the disk takes nothing, what is overdue is tried again after a pause and not at once.
func TestRunPausesWhereItCannotGetOn(t *testing.T) {
	for name, row := range map[string]metastore.Transaction{
		"timed out": {ID: "tx", Phase: metastore.TxnOngoing, Start: 1000, TimeoutMs: 100, PreviousID: noID, NextID: noID},
		"to settle": {ID: "tx", Phase: metastore.TxnCompleteCommit, Updated: 1000, PreviousID: noID, NextID: noID,
			Settling: []metastore.TxnPartition{{Topic: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := metastore.Open(metastore.Options{Path: filepath.Join(t.TempDir(), "meta.db")})
			if err != nil {
				t.Fatal(err)
			}
			err = store.Update(t.Context(), func(tx *metastore.Tx) error { return tx.PutTransaction(&row) })
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			waits := waitClock{make(chan time.Duration, 100)}
			c, err := Open(Options{Store: store, Clock: waits, Logger: slog.New(slog.NewTextHandler(&log, nil)), Settings: config.Default()})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil { // it refuses every commit from here on
				t.Fatal(err)
			}
			c.byID["tx"].ending = false // as if its settling were this start's
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- c.Run(ctx) }()
			for i := range 10 {
				// The first pass is due at once, and the wait for it may begin twice.
				if d := <-waits.waits; d != retryEvery && (d != 0 || i > 1) {
					t.Errorf("wait %d is %v long", i, d)
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d lines, want one:\n%s", n, log.String())
			}
		})
	}
}
