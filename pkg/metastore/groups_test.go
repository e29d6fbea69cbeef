package metastore

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func someGroup(name string) Group {
	instance, protocol := "i", "range"
	return Group{Name: name, Version: 5<<32 + 1, Rebalance: PreparingRebalance, Generation: 7, ProtocolType: "consumer", Protocol: &protocol, Leader: "a", Since: time.UnixMilli(1e12), Members: []GroupMember{
		{MemberID: "a", InstanceID: &instance, ClientID: "c", ClientHost: "/127.0.0.1", SessionTimeout: 10 * time.Second, RebalanceTimeout: time.Minute,
			Protocols: []GroupProtocol{{"range", []byte("x")}, {"sticky", nil}}, Assignment: []byte("y")},
		{MemberID: "b"},
	}}
}

func groups(t *testing.T, s *Store) (got []Group) {
	t.Helper()
	if err := s.View(func(tx *Tx) error {
		for g, err := range tx.Groups() {
			if err != nil {
				return err
			}
			got = append(got, g)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// GR-6: a group's membership is there after a restart.
func TestGroupsAreKept(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	empty := Group{Name: "", Since: time.UnixMilli(-5)}
	full := someGroup("a")
	update(t, s, func(tx *Tx) error { return tx.PutGroup(full) })
	update(t, s, func(tx *Tx) error { return tx.PutGroup(empty) })
	_ = s.Close()
	s = open(t, Options{Path: path})
	if got := groups(t, s); !reflect.DeepEqual(got, []Group{empty, full}) {
		t.Errorf("%+v", got)
	}
	_ = s.View(func(tx *Tx) error {
		if !tx.HasGroup("") || !tx.HasGroup("a") || tx.HasGroup("b") {
			t.Error("HasGroup")
		}
		return nil
	})
}

// The group and its offsets go, those of a group whose name begins with its name stay.
func TestDropGroupTakesItsOffsets(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	names := []string{"", "a", "aa", strings.Repeat("a", MaxGroupName)}
	for _, name := range names {
		update(t, s, func(tx *Tx) error {
			if err := tx.PutGroup(Group{Name: name}); err != nil {
				return err
			}
			return tx.PutOffset(name, Offset{Topic: strings.Repeat("t", 249), Partition: 1})
		})
	}
	has := func(name string) (group, offsets bool) {
		_ = s.View(func(tx *Tx) error { group, offsets = tx.HasGroup(name), tx.HasOffsets(name); return nil })
		return group, offsets
	}
	for i, name := range names {
		update(t, s, func(tx *Tx) error { return tx.DropGroup(name) })
		update(t, s, func(tx *Tx) error { return tx.DropGroup(name) }) // it is gone: no error
		for j, other := range names {
			if g, o := has(other); g != (j > i) || o != (j > i) {
				t.Errorf("with %d groups dropped, group %d: %v, its offsets %v", i+1, j, g, o)
			}
		}
	}
}

// A row of version 1 has neither a version of its state nor a rebalance.
func TestARowOfTheFirstVersionIsRead(t *testing.T) {
	want := someGroup("a")
	row := encodeGroup(want)
	want.Version, want.Rebalance = 0, NoRebalance
	if got, err := decodeGroup(groupKey("a"), append([]byte{1}, row[1+8+1:]...)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAGroupIsReadAsOnePiece(t *testing.T) {
	want := someGroup("a")
	b := AppendGroup([]byte("x"), want)
	if got, err := ReadGroup(b[1:]); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(b) - 1 {
		if g, err := ReadGroup(b[1 : 1+n]); err == nil {
			t.Errorf("%d bytes are %+v", n, g)
		}
	}
}

// The floor only rises.
func TestTheGroupsFloorRises(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	for _, v := range []struct{ raise, want uint64 }{{0, 0}, {1 << 40, 1 << 40}, {7, 1 << 40}, {1<<63 + 1, 1<<63 + 1}} {
		update(t, s, func(tx *Tx) error { return tx.RaiseGroupsFloor(v.raise) })
		if err := s.View(func(tx *Tx) error {
			if got, err := tx.GroupsFloor(); got != v.want || err != nil {
				t.Errorf("%x, %v, want %x", got, err, v.want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestADamagedGroupIsAnError(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	row := encodeGroup(someGroup("a"))
	for _, bad := range [][]byte{nil, row[:len(row)-1], append(row[:len(row):len(row)], 0), append([]byte{groupRow + 1}, row[1:]...)} {
		update(t, s, func(tx *Tx) error { return tx.put(bucketGroups, groupKey("a"), bad) })
		if err := s.View(func(tx *Tx) error {
			for _, err := range tx.Groups() {
				return err
			}
			return nil
		}); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// A file of an earlier build has no groups, and everything else.
func TestAFileWithoutGroupsGetsThem(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	id := kafka.NewTopicID()
	update(t, s, func(tx *Tx) error { return tx.PutTopic(Topic{Name: "t", ID: id, Partitions: 1}) })
	if err := s.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(bucketOffsets); err != nil {
			return err
		}
		return tx.DeleteBucket(bucketGroups)
	}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s = open(t, Options{Path: path})
	update(t, s, func(tx *Tx) error { return tx.PutGroup(Group{Name: "a"}) })
	if len(groups(t, s)) != 1 || len(names(t, s)) != 1 {
		t.Error("not there")
	}
}

func FuzzDecodeGroup(f *testing.F) {
	f.Add(groupKey("a"), encodeGroup(someGroup("a")))
	f.Add([]byte{0}, []byte{1})
	f.Fuzz(func(t *testing.T, key, row []byte) {
		g, err := decodeGroup(key, row)
		if err != nil {
			return
		}
		again, err := decodeGroup(groupKey(g.Name), encodeGroup(g))
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%+v\n%+v, %v", g, again, err)
		}
	})
}
