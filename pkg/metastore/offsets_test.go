package metastore

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func offsets(t *testing.T, s *Store, group string) (got []string) {
	t.Helper()
	if err := s.View(func(tx *Tx) error {
		for o, err := range tx.Offsets(group) {
			if err != nil {
				return err
			}
			got = append(got, o.Topic+"-"+strconv.Itoa(int(o.Partition))+"@"+strconv.Itoa(int(o.Offset)))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// ST-80: what was committed is there after a restart, with all that belongs to it.
func TestOffsetsAreKept(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	want := Offset{Topic: "t", Partition: 3, TopicID: kafka.NewTopicID(), Offset: 1 << 40, LeaderEpoch: 5, Metadata: "späť",
		Committed: time.UnixMilli(1e12), Expires: time.UnixMilli(2e12)}
	least := Offset{Topic: "t", Partition: 4, Offset: -7, LeaderEpoch: -1, Committed: time.UnixMilli(0)}
	for _, o := range []Offset{{Topic: "t", Partition: 3}, want, least} {
		update(t, s, func(tx *Tx) error { return tx.PutOffset("g", o) })
	}
	_ = s.Close()
	s = open(t, Options{Path: path})
	_ = s.View(func(tx *Tx) error {
		for _, w := range []Offset{want, least} {
			if got, ok, err := tx.Offset("g", w.Topic, w.Partition); err != nil || !ok || !reflect.DeepEqual(got, w) {
				t.Errorf("%+v, %v, %v", got, ok, err)
			}
		}
		if _, ok, err := tx.Offset("g", "t", 5); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		return nil
	})
}

func TestOffsetsAreThoseOfTheGroup(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	for i, g := range []string{"a", "aa", ""} {
		for p, topic := range []string{"t", "s", "tt"} {
			update(t, s, func(tx *Tx) error {
				return tx.PutOffset(g, Offset{Topic: topic, Partition: int32(p), Offset: int64(i)})
			})
		}
	}
	if got := offsets(t, s, "a"); !slices.Equal(got, []string{"s-1@0", "t-0@0", "tt-2@0"}) {
		t.Errorf("%q", got)
	}
	update(t, s, func(tx *Tx) error { return tx.DropOffset("a", "t", 0) })
	update(t, s, func(tx *Tx) error { return tx.DropOffset("a", "t", 0) })
	update(t, s, func(tx *Tx) error {
		return tx.DropOffsetsIf(func(group string, o Offset) bool {
			return group == "aa" && o.Topic != "t" || group == "" && o.Partition == 0
		})
	})
	for g, want := range map[string][]string{"a": {"s-1@0", "tt-2@0"}, "aa": {"t-0@1"}, "": {"s-1@2", "tt-2@2"}, "b": nil} {
		if got := offsets(t, s, g); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", g, got, want)
		}
	}
}

// A commit must not outlive the topic it is for.
func TestHasTopicIsOfANameAndAnID(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	id, other := kafka.NewTopicID(), kafka.NewTopicID()
	has := func(name string, id kafka.TopicID) (ok bool) {
		_ = s.View(func(tx *Tx) (err error) { ok, err = tx.HasTopic(name, id); return err })
		return ok
	}
	update(t, s, func(tx *Tx) error { return tx.PutTopic(Topic{Name: "t", ID: id, Partitions: 1}) })
	if !has("t", id) || has("t", other) || has("u", id) {
		t.Error("HasTopic")
	}
	update(t, s, func(tx *Tx) error { return tx.PutTopic(Topic{Name: "t", ID: id, Partitions: 1, Deleting: true}) })
	if has("t", id) {
		t.Error("it is being deleted")
	}
}

func TestADamagedOffsetIsAnError(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	k := offsetKey("g", "t", 1)
	for _, row := range [][]byte{{1, 2, 3}, append([]byte{9}, encodeOffset(Offset{})[1:]...)} {
		update(t, s, func(tx *Tx) error { return tx.put(bucketOffsets, k, row) })
		if err := s.View(func(tx *Tx) error { _, _, err := tx.Offset("g", "t", 1); return err }); err == nil {
			t.Errorf("%v is read", row)
		}
		if err := s.Update(t.Context(), func(tx *Tx) error { return tx.DropOffsetsIf(func(string, Offset) bool { return false }) }); err == nil {
			t.Errorf("%v is passed over", row)
		}
	}
}

func FuzzDecodeOffset(f *testing.F) {
	f.Add(offsetKey("g", "t", 1), encodeOffset(Offset{Metadata: "m", Expires: time.UnixMilli(5)}))
	f.Fuzz(func(t *testing.T, key, row []byte) {
		g, o, err := decodeOffset(key, row)
		if err != nil {
			return
		}
		g2, again, err := decodeOffset(offsetKey(g, o.Topic, o.Partition), encodeOffset(o))
		if err != nil || g2 != g || !reflect.DeepEqual(again, o) {
			t.Fatalf("%+v\n%+v, %v", o, again, err)
		}
	})
}
