package commitlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A client is an idempotent producer that sends one batch after the other, and
// repeats each until it is acknowledged.
type client struct {
	sent  int32           // sequence of the batch that is next
	acked map[int32]int64 // sequence to offset, promised to be durable
	taken map[int32]int64 // sequence to offset, appended by acks=1
	err   error           // of the last append, flush or deletion
	start int64           // of the log, promised to be durable: what meta.db says
}

func newClient() *client { return &client{acked: map[int32]int64{}, taken: map[int32]int64{}} }

const clientID = 77

func clientBatch(t testing.TB, sequence int32) record.Batch {
	return batch(t, spec{size: 150, timestamp: 1_000_000 + int64(sequence), id: clientID, sequence: sequence, tag: fmt.Sprint("b", sequence)})
}

// send appends the next batch, and with flush waits for acks=all.
func (c *client) send(t testing.TB, l *Log, flush bool) bool {
	t.Helper()
	a, err := l.Append(clientBatch(t, c.sent))
	if err == nil {
		if before, ok := c.taken[c.sent]; ok && (before != a.BaseOffset || !a.Duplicate) {
			// Only a power cut may take what acks=1 has promised.
			t.Fatalf("batch %d was at %d and is at %d", c.sent, before, a.BaseOffset)
		}
		c.taken[c.sent] = a.BaseOffset
	}
	if err == nil && flush {
		if err = l.AwaitFlushed(t.Context(), a.End); err == nil {
			c.ack(c.sent)
		}
	}
	if c.err = err; err != nil {
		return false
	}
	c.sent++
	return true
}

// ack notes that everything up to a sequence is durable.
func (c *client) ack(sequence int32) {
	for s := sequence; s >= 0; s-- {
		if _, ok := c.acked[s]; ok {
			return
		}
		if offset, ok := c.taken[s]; ok {
			c.acked[s] = offset
		}
	}
}

// deleteTo has everything below an offset deleted, as DeleteRecords does.
func (c *client) deleteTo(t testing.TB, l *Log, offset int64) bool {
	t.Helper()
	start, err := l.CheckStart(t.Context(), offset)
	if err == nil {
		for s, offset := range c.taken { // what is below is durable by now, though it is not there
			if offset < start {
				c.ack(s)
			}
		}
		c.start = max(c.start, start) // the commit to meta.db
		err = l.MoveStart(start)
	}
	c.err = err
	return err == nil
}

// step does one step of a workload: F is a batch with acks=all, a dot one without; R a roll; D
// deletes up to the middle of the log, and E all of it.
func (c *client) step(t testing.TB, l *Log, what rune) bool {
	t.Helper()
	switch at := l.Offsets(); what {
	case 'R':
		c.err = l.Roll()
		return c.err == nil
	case 'D':
		return c.deleteTo(t, l, (at.LogStart+at.End+1)/2)
	case 'E':
		return c.deleteTo(t, l, HighWatermark)
	}
	return c.send(t, l, what == 'F')
}

// crashWorkload is what the sweeps run: batches with and without acks=all,
// rolls, deletions, a clean stop, a kill with a repeat after it, and unclean starts.
// It goes on until something fails.
func crashWorkload(t testing.TB, disk vfs.FS, c *client) (failed error) {
	var l *Log
	start := func(epoch int32, clean bool) bool {
		o := testOptions(disk, epoch)
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Clean, o.LogStart = 1200, 300, clean, c.start
		var err error
		if l, err = Open(o); err != nil {
			failed = err
			return false
		}
		return true
	}
	send := func(pattern string) bool {
		for _, p := range pattern {
			if !c.step(t, l, p) {
				failed = c.err
				l.Abandon()
				return false
			}
		}
		return true
	}
	if !start(1, false) || !send("F..F.......DF.") {
		return failed
	}
	if failed = l.Close(); failed != nil {
		return failed
	}
	if c.ack(c.sent - 1); !start(2, true) || !send("..F.") || !send("...RE.") {
		return failed
	}
	l.Abandon() // the process is killed
	c.sent--    // the answer to the last one was lost: the client repeats it (ST-55)
	if !start(3, false) || !send("F....F") {
		return failed
	}
	l.Abandon()
	if !start(4, false) || !send("...F") || !send("........DRE") || !send("F.ER...") {
		return failed
	}
	if failed = l.Close(); failed == nil {
		c.ack(c.sent - 1)
	}
	return failed
}

// checkRecovered opens the log and wants every promised batch at its offset,
// offsets without gaps, no batch twice, and the client to go on where it was.
func checkRecovered(t testing.TB, disk vfs.FS, c *client, what string) *Log {
	t.Helper()
	o := testOptions(disk, 9)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.LogStart = 1200, 300, c.start
	l, err := Open(o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if at := l.Offsets(); at.LogStart != c.start {
		t.Fatalf("%s: the log starts at %d, promised was %d", what, at.LogStart, c.start)
	}
	found := map[int32]int64{}
	for _, b := range contents(t, l) {
		if before, ok := found[b.BaseSequence()]; ok {
			t.Fatalf("%s: batch %d is there twice, at %d and %d", what, b.BaseSequence(), before, b.BaseOffset())
		}
		found[b.BaseSequence()] = b.BaseOffset()
	}
	last := int32(-1)
	for s, offset := range c.acked {
		if offset < c.start {
			found[s] = offset // deleted, and known to be repeated all the same
		}
		if got, ok := found[s]; !ok || got != offset {
			t.Fatalf("%s: batch %d was promised at offset %d; found %d, %v (%+v)", what, s, offset, got, ok, l.Offsets())
		}
	}
	for s := range found {
		last = max(last, s)
	}
	// Repeats of the last five are known (ST-9), and what is missing can be sent again, in order.
	for s := max(0, last-4); s < c.sent+3; s++ {
		a, err := l.Append(clientBatch(t, s))
		if err != nil {
			t.Fatalf("%s: batch %d again: %v", what, s, err)
		}
		if before, ok := found[s]; a.Duplicate != ok || ok && a.BaseOffset != before {
			t.Fatalf("%s: batch %d was found at %d, %v; now %+v", what, s, before, ok, a)
		}
		if err := l.AwaitFlushed(t.Context(), a.End); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	return l
}

// ST-53, ST-54, ST-55, ST-9, ST-62: the power goes after every single
// operation, and several things may be left of what was not synced.
func TestPowerCutAfterEveryOperation(t *testing.T) {
	survivals := 6
	if short() {
		survivals = 3
	}
	n := 0
	for ; ; n++ {
		disk := crashfs.New()
		disk.StopAfter(n)
		c := newClient()
		err := crashWorkload(t, disk, c)
		for _, s := range crashfs.Survivals(uint64(n), survivals) {
			clone := disk.CrashClone(s)
			what := fmt.Sprintf("cut after %d operations, %v", n, s)
			l := checkRecovered(t, clone, c, what)
			end := l.Offsets().End
			// All is promised again by now: another cut takes nothing.
			l.Abandon()
			l = mustOpen(t, startingAt(testOptions(clone.CrashClone(crashfs.LoseUnsynced), 10), c.start))
			if got := l.Offsets().End; got != end {
				t.Fatalf("%s: after another cut the log ends at %d, not %d", what, got, end)
			}
			l.Abandon()
		}
		checkKilled(t, disk, c, fmt.Sprintf("killed after %d operations", n))
		if _, cut := disk.Cut(); !cut {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	t.Logf("power cut after each of %d operations, %d survivals each", n, survivals)
}

func startingAt(o Options, start int64) Options {
	o.LogStart = start
	return o
}

// checkKilled is for a process that was killed at this instant. The next one
// makes durable what it acknowledges, also what the killed one had left unsynced.
func checkKilled(t testing.TB, disk *crashfs.FS, c *client, what string) {
	t.Helper()
	killed := disk.KillClone()
	l := checkRecovered(t, killed, c, what)
	end := l.Offsets().End
	l.Abandon()
	l = mustOpen(t, startingAt(testOptions(killed.CrashClone(crashfs.LoseUnsynced), 10), c.start))
	if got := l.Offsets().End; got != end {
		t.Fatalf("%s: after a power cut the log ends at %d, not %d", what, got, end)
	}
	l.Abandon()
}

// ST-55, ST-54: killed between a batch and its repeat; the repeat's answer
// makes durable what the killed process wrote, directory and all.
func TestRepeatAfterAKillIsDurable(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	mustAppend(t, l, spec{n: 3, id: 5})
	killed := disk.KillClone()
	l = mustOpen(t, testOptions(killed, 2))
	a := mustAppend(t, l, spec{n: 3, id: 5})
	if !a.Duplicate || a.BaseOffset != 0 || l.Flushed(a.End) {
		t.Fatal("no repeat, or none that waits:", a)
	}
	mustFlush(t, l)
	l = mustOpen(t, testOptions(killed.CrashClone(crashfs.LoseUnsynced), 3))
	if end := l.Offsets().End; end != 3 {
		t.Error("lost: the log ends at", end)
	}
}

// ST-72 for one log: every single operation fails once. The append fails or
// succeeds, nothing promised is lost, and the log goes on or says that it is offline.
func TestEveryOperationFailsOnce(t *testing.T) {
	n := 1
	for ; ; n++ {
		inner := crashfs.New()
		disk := faultfs.New(inner)
		fault := disk.Fail(faultfs.Rule{Nth: n, Short: 30})
		c := newClient()
		err := crashWorkload(t, disk, c)
		if err != nil && fault.Hits() == 0 {
			t.Fatal(err)
		}
		what := fmt.Sprintf("operation %d fails: %v: %v", n, fault.Last(), err)
		if c.err != nil && !errors.Is(c.err, kerr.KafkaStorageError) {
			t.Fatalf("%s: not Kafka's error", what)
		}
		checkRecovered(t, inner.KillClone(), c, what+", killed").Abandon()
		if fault.Last().Kind&syncs == 0 {
			checkRecovered(t, inner.CrashClone(crashfs.LoseUnsynced), c, what+", cut").Abandon()
		}
		if fault.Hits() == 0 {
			break
		}
	}
	t.Logf("each of %d operations failed once", n-1)
}

// ST-61, ST-70, ST-72: every fsync fails once and drops what it was to make durable, though later ones succeed:
// nothing that was promised was in it, and what the next process promises outlives a power cut.
func TestEveryFailedFsyncLosesNothingPromised(t *testing.T) {
	n := 1
	for ; ; n++ {
		inner := crashfs.New()
		disk := faultfs.New(inner)
		fault := disk.Fail(faultfs.Rule{Kinds: syncs, Nth: n, Then: crashfs.DropUnsynced, ThenDir: crashfs.DropUnsyncedNames})
		c := newClient()
		err := crashWorkload(t, disk, c)
		if err != nil && fault.Hits() == 0 {
			t.Fatal(err)
		}
		what := fmt.Sprintf("fsync %d fails: %v: %v", n, fault.Last(), err)
		if c.err != nil && !errors.Is(c.err, kerr.KafkaStorageError) {
			t.Fatalf("%s: not Kafka's error", what)
		}
		for _, s := range crashfs.Survivals(uint64(n), 5) {
			checkRecovered(t, inner.CrashClone(s), c, fmt.Sprintf("%s, %v", what, s)).Abandon()
		}
		if op := fault.Last(); op.Name != "." { // names that the data directory has dropped can't be made anew
			checkKilled(t, inner, c, what+", killed")
		}
		if fault.Hits() == 0 {
			break
		}
	}
	t.Logf("each of %d fsyncs failed once", n-1)
}
