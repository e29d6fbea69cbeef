//go:build unix

// Package matrix runs one and the same workload with every client that people use (CF-5): ../PROTOCOL.md says how. docs/clients.md is
// written from such a run.
package matrix

import (
	"flag"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var transactionsAlone = flag.Bool("transactions", false, "run the transactions alone, and do not compare docs/clients.md")

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programs(); err == nil {
		os.RemoveAll(dir) //nolint:errcheck // a leftover costs only space
	}
	os.Exit(code)
}

// CF-5: every client creates, produces with each codec, consumes in a group of three that rebalances, commits, lives on over a SIGKILL of the
// broker, and resumes. docs/clients.md says the same as this run (-update writes it).
func TestMatrix(t *testing.T) {
	if os.Getenv("DOZE_KAFKA_TARGET") != "kafka" && os.Getenv("BOOTSTRAP") == "" {
		t.Setenv("DOZE_KAFKA_BINARY", target.Binary(t)) // built once
	}
	var mu sync.Mutex
	results := map[string]*result{}
	t.Run("clients", func(t *testing.T) {
		slots := make(chan struct{}, 2)
		for _, d := range Drivers {
			t.Run(d.Name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				r := &result{}
				client(t, d, r)
				mu.Lock()
				defer mu.Unlock()
				results[d.Name] = r
			})
		}
	})
	if !t.Failed() && !*transactionsAlone {
		checkDocument(t, results)
	}
}

// client runs the workload with a client, with each assignor that it has.
func client(t *testing.T, d *Driver, r *result) {
	d.Command(t) // or skip before a broker is started
	broker := target.Start(t, target.Options{Properties: map[string]string{"group.initial.rebalance.delay.ms": "100"}})
	if *transactionsAlone {
		transact(t, broker, d, r)
		return
	}
	for _, step := range []string{"eager", "cooperative"} {
		w := newWorkload(t, broker, d, step, r)
		if r.info = w.info; w.info.Client != d.Name {
			t.Fatalf("the driver calls its client %q, the table %q", w.info.Client, d.Name)
		}
		if step == "eager" {
			unexplained(t, d, w.info)
		}
		if w.assignor != "" {
			w.run()
			r.did(step)
		}
		w.producer.quit()
	}
	transact(t, broker, d, r)
}

// unexplained fails when the client has not something and the table gives no reason, or gives one for what the client has.
func unexplained(t *testing.T, d *Driver, info wire.Line) {
	t.Helper()
	for _, f := range slices.Concat(features, codecNames) {
		has := slices.Contains(info.Features, f) || slices.Contains(info.Codecs, f)
		if _, reason := d.Limits[f]; has == reason {
			t.Errorf("%s: has %s: %v, and the table gives a reason why not: %v", d.Name, f, has, reason)
		}
	}
}

// run is the workload, with one assignor.
func (w *workload) run() {
	w.t.Logf("%s %s, %s: %s", w.info.Client, w.info.Version, w.assignor, w.broker.Name())
	w.step("create")
	w.create()
	w.leaders()
	for _, codec := range w.info.Codecs {
		w.produceWith(codec)
	}
	w.step("join")
	members := w.join("a", "b", "c")
	w.stable(3)
	w.readAll()
	w.step("commit")
	w.commit(members)
	w.result.did("commit")

	// One leaves: the others take over where it committed.
	w.step("one leaves")
	w.leave(members[2])
	members[2].quit()
	members = members[:2]
	w.stable(2)
	w.step("rebalanced")
	w.produce("none", false, afterLeave)
	w.readAll()
	w.commit(members)
	w.result.did("rebalance")

	// The broker is killed under them, and they go on with what comes then.
	w.step("kill")
	w.wantCommitted()
	w.broker.Kill()
	w.broker.Restart()
	w.step("restarted")
	w.stable(2)
	w.step("produce")
	w.produce("none", false, afterRestart)
	w.readAll()
	w.step("commit")
	w.commit(members)
	w.result.did("restart")

	// Without members, the commits stay; a new member begins at them.
	w.step("all leave")
	w.leave(members...)
	for _, d := range members {
		d.quit()
	}
	w.becomes("Empty, 0 members, 0 partitions")
	w.wantCommitted()
	w.step("produce")
	w.produce("none", false, afterLeave)
	w.step("join")
	last := w.join("d")
	w.stable(1)
	w.readAll()
	w.step("commit")
	w.commit(last)
	w.leave(last...)
	last[0].quit()
	w.with(func(l *ledger) error {
		if l.again > 0 {
			w.t.Logf("%d records came again while the group formed, before the first commit", l.again)
		}
		return nil
	})
	w.result.did("resume")
}

// produceWith produces with a codec, plainly and idempotently, and looks at what is stored.
func (w *workload) produceWith(codec string) {
	w.t.Helper()
	for _, idempotent := range []bool{false, true} {
		if idempotent && !w.has("idempotent") {
			continue
		}
		from := w.made
		w.produce(codec, idempotent, perCodec)
		w.stored(codec, idempotent, from, w.made)
		if idempotent {
			w.result.did("idempotent")
		}
	}
	if !slices.Contains(w.result.codecs, codec) {
		w.result.codecs = append(w.result.codecs, codec)
	}
}
