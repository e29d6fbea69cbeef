package metastore

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// ST-2: the topic registry with topic configs.
func TestTopicsAreKeptByName(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	a := Topic{Name: "a", ID: kafka.NewTopicID(), Partitions: 3, Configs: map[string]string{"cleanup.policy": "compact", "x": ""}}
	b := Topic{Name: "b", ID: kafka.NewTopicID(), Partitions: 1, Deleting: true}
	update(t, s, func(tx *Tx) error { return tx.PutTopic(b) })
	update(t, s, func(tx *Tx) error { return tx.PutTopic(a) })
	_ = s.Close()
	s = open(t, Options{Path: path})
	var got []Topic
	_ = s.View(func(tx *Tx) error {
		for topic, err := range tx.Topics() {
			if err != nil {
				t.Error(err)
			}
			got = append(got, topic)
		}
		return nil
	})
	if !reflect.DeepEqual(got, []Topic{a, b}) {
		t.Errorf("%+v", got)
	}
}

// A drop is for a name and an id: a topic of the name that came after stays.
func TestDropTopicIsByNameAndID(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	old, now := kafka.NewTopicID(), kafka.NewTopicID()
	starts := func() (got []int64) {
		_ = s.View(func(tx *Tx) error {
			got = []int64{tx.LogStart(old, 0), tx.LogStart(old, 7), tx.LogStart(now, 0), tx.LogStart(now, 1)}
			return nil
		})
		return got
	}
	update(t, s, func(tx *Tx) error {
		for _, err := range []error{tx.PutTopic(Topic{Name: "a", ID: now, Partitions: 1}),
			tx.PutLogStart(old, 0, 5), tx.PutLogStart(old, 7, 6), tx.PutLogStart(now, 0, 7)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if got := starts(); !slices.Equal(got, []int64{5, 6, 7, 0}) {
		t.Errorf("%v", got)
	}
	update(t, s, func(tx *Tx) error { return tx.DropTopic("a", old) })
	if got := starts(); !slices.Equal(got, []int64{0, 0, 7, 0}) || len(names(t, s)) != 1 {
		t.Errorf("%v, %q", got, names(t, s))
	}
	update(t, s, func(tx *Tx) error { return tx.DropTopic("a", now) })
	if got := starts(); !slices.Equal(got, []int64{0, 0, 0, 0}) || len(names(t, s)) != 0 {
		t.Errorf("%v, %q", got, names(t, s))
	}
}

// A damaged log start is an error, not 0, which would bring back deleted records.
func TestADamagedLogStartIsAnError(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	id := kafka.NewTopicID()
	update(t, s, func(tx *Tx) error { return tx.put(bucketLogStarts, partitionKey(id, 0), []byte{2}) })
	if err := s.View(func(tx *Tx) error { _ = tx.LogStart(id, 0); return nil }); err == nil {
		t.Error("no error")
	}
}

// ST-42: first dirty offsets are those of a topic id; one that can't be read costs a look at the whole log.
func TestFirstDirtyGoesWithItsTopic(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	old, now := kafka.NewTopicID(), kafka.NewTopicID()
	firsts := func() (all []int64) {
		if err := s.View(func(tx *Tx) error {
			all = []int64{tx.FirstDirty(old, 0), tx.FirstDirty(old, 1), tx.FirstDirty(now, 0)}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutTopic(Topic{Name: "a", ID: now, Partitions: 1}), tx.PutFirstDirty(old, 1, 5), tx.PutFirstDirty(now, 0, 6))
	})
	if got := firsts(); !slices.Equal(got, []int64{0, 5, 6}) {
		t.Error(got)
	}
	update(t, s, func(tx *Tx) error { return tx.DropTopic("a", old) })
	update(t, s, func(tx *Tx) error { return tx.put(bucketDirty, partitionKey(now, 0), []byte{2}) })
	if got := firsts(); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Error(got)
	}
}

func FuzzDecodeTopic(f *testing.F) {
	f.Add(encodeTopic(Topic{ID: kafka.TopicID{1}, Partitions: 1, Configs: map[string]string{"a": "b", "c": ""}}))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, row []byte) {
		topic, err := decodeTopic("x", row)
		if err != nil {
			return
		}
		again, err := decodeTopic("x", encodeTopic(topic))
		if err != nil || !reflect.DeepEqual(again, topic) {
			t.Fatalf("%+v\n%+v, %v", topic, again, err)
		}
	})
}
