package metastore

import (
	"maps"
	"testing"

	"go.etcd.io/bbolt"
)

func TestConfigsOfBrokersAreKept(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	configs := map[string]string{"a": "1", "b": "", "": "x"}
	update(t, s, func(tx *Tx) error {
		if got, stored := tx.ClusterConfigs(); stored || got != nil || tx.BrokerConfigs(1) != nil {
			t.Errorf("at first: %v %v", got, stored)
		}
		if err := tx.PutClusterConfigs(nil); err != nil {
			return err
		}
		return tx.PutBrokerConfigs(1, configs)
	})
	_ = s.Close()
	s = open(t, Options{Path: path})
	if err := s.View(func(tx *Tx) error {
		if got, stored := tx.ClusterConfigs(); !stored || len(got) != 0 {
			t.Errorf("cluster: %v %v", got, stored)
		}
		if !maps.Equal(tx.BrokerConfigs(1), configs) || tx.BrokerConfigs(2) != nil {
			t.Errorf("brokers: %v, %v", tx.BrokerConfigs(1), tx.BrokerConfigs(2))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A damaged row is an error, not the defaults.
func TestADamagedRowOfABroker(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	for _, row := range []string{"", "\x02\x00", "\x01", "\x01\x01\x01a", "\x01\x00x", "\x01\x02\x01a\x00\x01a\x00"} {
		if err := s.db.Update(func(bolt *bbolt.Tx) error {
			return bolt.Bucket(bucketBrokers).Put([]byte(keyCluster), []byte(row))
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.View(func(tx *Tx) error { tx.ClusterConfigs(); return nil }); err == nil {
			t.Errorf("%q is read", row)
		}
	}
}
