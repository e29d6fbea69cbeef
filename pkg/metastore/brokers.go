package metastore

import (
	"fmt"
	"strconv"
)

// The keys of the bucket brokers are not broker ids alone: the empty one, by
// which Kafka's requests mean the cluster, is no key of bbolt's.
const (
	keyCluster      = "cluster"
	keyBrokerPrefix = "broker-"
)

// ClusterConfigs are the configs of brokers that were altered for the whole
// cluster, and whether any ever were.
func (t *Tx) ClusterConfigs() (configs map[string]string, stored bool) { return t.brokers(keyCluster) }

// PutClusterConfigs stores them, in place of all there were.
func (t *Tx) PutClusterConfigs(configs map[string]string) error {
	return t.putBrokers(keyCluster, configs)
}

// BrokerConfigs are the configs that were altered for one broker; nil for none.
func (t *Tx) BrokerConfigs(id int32) map[string]string {
	configs, _ := t.brokers(brokerKey(id))
	return configs
}

// PutBrokerConfigs stores them, in place of all there were.
func (t *Tx) PutBrokerConfigs(id int32, configs map[string]string) error {
	return t.putBrokers(brokerKey(id), configs)
}

func brokerKey(id int32) string { return keyBrokerPrefix + strconv.Itoa(int(id)) }

func (t *Tx) brokers(key string) (configs map[string]string, stored bool) {
	row := t.get(bucketBrokers, []byte(key))
	if row == nil {
		return nil, false
	}
	err := errRow
	if len(row) > 0 && row[0] != rowVersion {
		err = fmt.Errorf("row version %d is not known", row[0])
	} else if len(row) > 0 {
		configs, err = decodeConfigs(row[1:])
	}
	if err != nil {
		t.fail(fmt.Errorf("meta.db: configs of %s: %w", key, err))
	}
	return configs, true
}

func (t *Tx) putBrokers(key string, configs map[string]string) error {
	return t.put(bucketBrokers, []byte(key), appendConfigs([]byte{rowVersion}, configs))
}
