package streams

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// goneKeys is how many keys are deleted at first, for good.
const goneKeys = 750

const exactlyOnce = "exactly_once_v2"

// A tableWriter writes updates and deletions, and keeps what they come to.
type tableWriter struct {
	t       *testing.T
	client  *kgo.Client
	rng     *rand.Rand
	updates int
	latest  map[string]string
	counts  map[string]int // updates of a key since it was deleted
	windows map[string]int // by the key's last character and window
	seen    map[string]bool

	mu    sync.Mutex // guards what follows, as acknowledgements come from another goroutine
	again map[string]bool
	spoil map[string]bool // windows of which nobody knows the count
}

func newTableWriter(t *testing.T, client *kgo.Client) *tableWriter {
	return &tableWriter{t: t, client: client, rng: rand.New(rand.NewPCG(5, 6)), latest: map[string]string{}, counts: map[string]int{},
		windows: map[string]int{}, seen: map[string]bool{}, again: map[string]bool{}, spoil: map[string]bool{}}
}

// write goes on until ctx ends. Keys that are deleted at first ought to go with their tombstones.
func (w *tableWriter) write(ctx context.Context) {
	for i := range goneKeys {
		w.put(fmt.Sprint("gone-", i), false)
	}
	for i := range goneKeys {
		w.put(fmt.Sprint("gone-", i), true)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for behind, asked := false, time.Now(); ctx.Err() == nil; {
		if time.Since(asked) > 500*time.Millisecond { // on a slow machine the application would never come to the end
			behind, asked = w.behind(ctx) > 5000, time.Now()
		}
		for range 20 {
			if behind {
				break
			}
			w.put(fmt.Sprint("key-", w.rng.IntN(tableKeys)), w.rng.IntN(5) == 0)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// behind is how many updates the application has not committed; 0 if nobody answers.
func (w *tableWriter) behind(ctx context.Context) (n int64) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	admin := kadm.NewClient(w.client)
	done, err := admin.FetchOffsets(ctx, "table")
	if err != nil {
		return 0
	}
	ends, err := admin.ListEndOffsets(ctx, "updates")
	if err != nil {
		return 0
	}
	ends.Each(func(end kadm.ListedOffset) {
		at, _ := done.Lookup(end.Topic, end.Partition)
		n += end.Offset - at.At
	})
	return n
}

// put writes a value, or a deletion, of a key.
func (w *tableWriter) put(key string, deleted bool) {
	now := time.Now()
	record := &kgo.Record{Topic: "updates", Key: []byte(key), Timestamp: now}
	w.updates++
	w.seen[key] = true
	window := fmt.Sprintf("%s@%d", key[len(key)-1:], now.UnixMilli()/windowMs*windowMs)
	w.windows[window]++
	if deleted {
		delete(w.latest, key)
		delete(w.counts, key)
	} else {
		w.latest[key] = fmt.Sprintf("value %d of %s", w.updates, key)
		w.counts[key]++
		record.Value = []byte(w.latest[key])
	}
	w.client.Produce(w.t.Context(), record, func(_ *kgo.Record, err error) {
		if err != nil { // it is there or not
			w.mu.Lock()
			defer w.mu.Unlock()
			w.again[key], w.spoil[window] = true, true
		}
	})
}

// finish writes again the keys of which the client has given up a record: it does, where a new connection ends before its first answer.
func (w *tableWriter) finish() {
	for left := 1; left > 0; {
		if err := w.client.Flush(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.mu.Lock()
		again := w.again
		w.again = map[string]bool{}
		w.mu.Unlock()
		left = len(again)
		for key := range again {
			w.put(key, true)
			w.put(key, false)
		}
	}
}

// model is what the stores hold, by "store TAB key".
func (w *tableWriter) model(guarantee string) map[string]string {
	all := map[string]string{}
	for key, value := range w.latest {
		all["latest\t"+key] = value
		if guarantee == exactlyOnce {
			value = fmt.Sprint(w.counts[key], " ", value)
		}
		all["sums\t"+key] = value
	}
	for window, n := range w.windows {
		if !w.spoil[window] {
			all["windows\t"+window] = fmt.Sprint(n)
		}
	}
	return all
}

// forgive makes counts what the model has where they may be otherwise: more than that at least once, and anything in spoilt windows.
func (w *tableWriter) forgive(got, want map[string]string, guarantee string) {
	for window := range w.spoil {
		delete(got, "windows\t"+window)
	}
	for window := range w.windows {
		key := "windows\t" + window
		has, _ := strconv.Atoi(got[key])
		ought, _ := strconv.Atoi(want[key])
		if guarantee != exactlyOnce && ought > 0 && has > ought {
			got[key] = want[key]
		}
	}
}

// awaitGone waits, while more is written, until most of the keys that were deleted at first have gone from the tables' changelogs, with their tombstones.
func (w *tableWriter) awaitGone(t *testing.T, admin *kadm.Client) {
	t.Helper()
	late := time.Now().Add(finishes)
	for _, store := range []string{"latest", "sums"} {
		for {
			_, gone := w.readChangelog(t, admin, stores[store])
			if gone < goneKeys/2 {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s has %d of the keys that were deleted at first: their tombstones do not go", stores[store], gone)
			}
		}
	}
}

// compacted reads the changelogs to their ends and wants them to be compacted: of what was written little is left, and the logs of a
// store are smaller than the updates it is made of.
func (w *tableWriter) compacted(t *testing.T, admin *kadm.Client, broker *target.Broker, written map[string]int64) (told string) {
	t.Helper()
	sizes := map[string]int64{}
	for store, topic := range stores {
		eachLog(t, broker, topic+"-*", func(_ string, size int64) { sizes[store] += size })
	}
	eachLog(t, broker, "updates-*", func(_ string, size int64) { sizes["updates"] += size })
	for store, topic := range stores {
		records, gone := w.readChangelog(t, admin, topic)
		told += fmt.Sprintf("%s: %d records of %d, %d of the %d keys deleted at first, %d bytes; ", store, records, written[topic], gone, goneKeys, sizes[store])
		if int64(records) > written[topic]/2 {
			t.Errorf("%s has %d records of %d: it was not compacted", topic, records, written[topic])
		}
		if sizes[store] >= sizes["updates"] {
			t.Errorf("%s has %d bytes; the updates have %d", topic, sizes[store], sizes["updates"])
		}
	}
	return told + fmt.Sprintf("updates: %d bytes", sizes["updates"])
}

// readChangelog counts what is there, and the keys that were deleted at first among it; offsets ascend.
func (w *tableWriter) readChangelog(t *testing.T, admin *kadm.Client, topic string) (records, gone int) {
	t.Helper()
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(w.client.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	last := map[int32]int64{}
	for {
		// The last offsets may be markers, or of what was aborted: behind them nothing comes.
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		for r := range fetches.RecordsAll() {
			if before, ok := last[r.Partition]; ok && r.Offset <= before {
				t.Fatalf("%s-%d: offset %d after %d", topic, r.Partition, r.Offset, before)
			}
			last[r.Partition] = r.Offset
			records++
			if strings.HasPrefix(string(r.Key), "gone-") {
				gone++
			}
		}
		behind := false
		ends.Each(func(o kadm.ListedOffset) { behind = behind || last[o.Partition]+1 < o.Offset })
		if fetches.NumRecords() == 0 || !behind {
			return records, gone
		}
	}
}
