package topic

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// retryOpen is how long a failed open is remembered: clients retry in a
// tighter loop, and a broken log is not read over and over for them.
const retryOpen = time.Second

// A Topic is one topic; immutable but for its logs. After a config change or growth there is
// another *Topic under the name, sharing the logs.
type Topic struct {
	r          *Registry
	name       string
	id         kafka.TopicID
	partitions int32
	overrides  map[string]string
	slots      []*slot // shared with the other *Topics of this id
	parsed     atomic.Pointer[parsed]
}

// parsed is what a topic's overrides come to.
type parsed struct {
	of     *effective
	config *commitlog.Config
}

// A slot is the place of one partition's log.
type slot struct {
	log   atomic.Pointer[commitlog.Log]
	dirty atomic.Int64 // the first dirty offset plus 1, as in meta.db; 0: not looked up yet
	// uncompacted is the last compaction, if it failed.
	uncompacted atomic.Pointer[failure]

	mu     sync.Mutex // held while the log is opened or ended; the others wait
	ended  error      // no log will be opened any more
	failed *failure   // the last open
}

type failure struct {
	err error
	at  time.Time
}

// newTopic makes the topic of a row. slots are those of an earlier *Topic of the same id.
func (r *Registry) newTopic(row metastore.Topic, slots []*slot) *Topic {
	t := &Topic{r: r, name: row.Name, id: row.ID, partitions: row.Partitions, overrides: row.Configs}
	fresh := make([]slot, max(0, int(row.Partitions)-len(slots)))
	t.slots = make([]*slot, 0, row.Partitions)
	t.slots = append(t.slots, slots...)
	for i := range fresh {
		t.slots = append(t.slots, &fresh[i])
	}
	return t
}

// config is what the topic's logs act on. It is parsed when a log wants it (a
// start reads thousands of rows), and anew once configs of the broker were altered.
func (t *Topic) config() (*commitlog.Config, error) {
	now := t.r.effective.Load()
	if len(t.overrides) == 0 {
		return now.defaults, nil
	}
	if p := t.parsed.Load(); p != nil && p.of == now {
		return p.config, nil
	}
	c, err := logConfig(now.settings, t.overrides)
	if err == nil {
		t.parsed.Store(&parsed{now, c})
	}
	return c, err
}

// row is the topic's row in meta.db.
func (t *Topic) row() metastore.Topic {
	return metastore.Topic{Name: t.name, ID: t.id, Partitions: t.partitions, Configs: t.overrides}
}

// Name is the topic's name.
func (t *Topic) Name() string { return t.name }

// ID is its id.
func (t *Topic) ID() kafka.TopicID { return t.id }

// Partitions is the number of partitions.
func (t *Topic) Partitions() int32 { return t.partitions }

// Overrides are the configs set on the topic itself, not to be changed.
func (t *Topic) Overrides() map[string]string { return t.overrides }

// Log is the log of a partition, opened if need be: by the first that asks,
// while the others wait for it.
// UNKNOWN_TOPIC_OR_PARTITION for a partition there is not (or a topic deleted meanwhile);
// KAFKA_STORAGE_ERROR for one that can't be opened, which is tried again after a second.
func (t *Topic) Log(partition int32) (*commitlog.Log, error) {
	if partition < 0 || partition >= t.partitions {
		return nil, kerr.UnknownTopicOrPartition
	}
	s := t.slots[partition]
	if l := s.log.Load(); l != nil {
		return l, nil
	}
	return t.openLog(partition, s)
}

// Opened is the log of a partition if it is open: what looks at logs only in
// passing (metrics, sweeps) opens none.
func (t *Topic) Opened(partition int32) (*commitlog.Log, bool) {
	if partition < 0 || partition >= t.partitions {
		return nil, false
	}
	l := t.slots[partition].log.Load()
	return l, l != nil
}

func (t *Topic) openLog(partition int32, s *slot) (*commitlog.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch l := s.log.Load(); {
	case s.ended != nil:
		return nil, s.ended
	case l != nil:
		return l, nil
	case t.r.closed.Load():
		return nil, errStopping
	case s.failed != nil && time.Since(s.failed.at) < retryOpen:
		return nil, s.failed.err
	}
	tp := kafka.TopicPartition{Topic: t.name, Partition: partition}
	l, err := t.recoverLog(tp)
	if err != nil {
		t.r.o.Shared.Logger.Error("a partition can't be opened; it is offline", "partition", tp.String(), "error", err)
		err = fmt.Errorf("open %s: %w: %w", tp, kerr.KafkaStorageError, err)
		s.failed = &failure{err, time.Now()}
		return nil, err
	}
	s.failed = nil
	s.log.Store(l)
	t.r.open.Add(1)
	t.r.verified(tp)
	return l, nil
}

// now is the topic as it is published: t may be of before a change.
func (t *Topic) now() *Topic {
	if current, ok := t.r.LookupID(t.id); ok {
		return current
	}
	return t
}

func (t *Topic) recoverLog(tp kafka.TopicPartition) (*commitlog.Log, error) {
	o, err := t.logOptions(tp)
	if err != nil {
		return nil, err
	}
	o.Clean = t.r.o.Clean != nil && t.r.o.Clean(tp)
	err = t.r.o.Store.View(func(tx *metastore.Tx) error {
		o.LogStart = tx.LogStart(t.id, tp.Partition)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return commitlog.Open(o)
}

// logOptions are those of a partition's log, as its configs are now; it may be clean, and start later.
func (t *Topic) logOptions(tp kafka.TopicPartition) (commitlog.Options, error) {
	c, err := t.now().config()
	return commitlog.Options{Shared: t.r.o.Shared, Dir: t.r.dir(tp), Partition: tp, TopicID: t.id, Config: c}, err
}

// end makes Log fail with err from now on, and returns the log if it was open.
func (s *slot) end(r *Registry, err error) *commitlog.Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	l := s.log.Swap(nil)
	if l != nil {
		r.open.Add(-1)
	}
	return l
}
