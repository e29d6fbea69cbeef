// Package topic is the registry of topics and their logs: create, delete,
// configure, and opening a log on first touch.
package topic

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import (
	"context"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// Options open a Registry.
type Options struct {
	Shared   *commitlog.Shared
	Store    *metastore.Store
	DataDir  string
	Settings *config.Settings
	// Verified says whether a partition's directory was flushed by a clean stop.
	Clean func(kafka.TopicPartition) bool
}

// A Registry is all topics. Lookups take no lock.
type Registry struct{ _ int }

// Open reads the rows (no partition is opened) and finishes deletes that were under way.
func Open(ctx context.Context, o Options) (*Registry, error) { panic("not built") }

// Lookup finds a topic by name.
func (r *Registry) Lookup(name string) (*Topic, bool) { panic("not built") }

// LookupID finds a topic by id.
func (r *Registry) LookupID(id kafka.TopicID) (*Topic, bool) { panic("not built") }

// All returns the topics in the order of their names; the slice is not to be changed.
func (r *Registry) All() []*Topic { panic("not built") }

// A Spec asks for a topic, as CreateTopics does.
type Spec struct {
	Name              string
	Partitions        int32 // -1: num.partitions
	ReplicationFactor int16 // -1: the default
	Assignments       []Assignment
	Configs           []ConfigEntry
}

// An Assignment is a manual replica assignment.
type Assignment struct {
	Partition int32
	Brokers   []int32
}

// A ConfigEntry is one config as a client gave it; Value nil is null.
type ConfigEntry struct {
	Name  string
	Value *string
}

// Created is the outcome of one Spec: Err, or the topic as it is (or would be).
type Created struct {
	Err   error
	Topic *Topic
}

// Create makes topics, each on its own: the outcomes are in the order of the
// specs (ReplicationControlManager.createTopics). When it returns, appends are taken and
// the rows are durable (FX-21), all in one commit.
func (r *Registry) Create(ctx context.Context, specs []Spec, validateOnly bool) []Created {
	panic("not built")
}

// Ensure is auto-creation: the topic named, made with the defaults if need be.
func (r *Registry) Ensure(ctx context.Context, name string) (*Topic, error) { panic("not built") }

// Delete removes a topic. It is complete when it returns (FX-21).
func (r *Registry) Delete(ctx context.Context, t *Topic) error { panic("not built") }

// Grow adds partitions up to n, durably. It never shrinks: INVALID_PARTITIONS.
func (r *Registry) Grow(ctx context.Context, t *Topic, n int32) error { panic("not built") }

// Open logs, for metrics.
func (r *Registry) OpenLogs() int { panic("not built") }

// Unverified lists the partitions not opened and verified since the last unclean stop (ST-50).
func (r *Registry) Unverified() []kafka.TopicPartition { panic("not built") }

// Close flushes and closes every open log. After an error the stop was not clean.
func (r *Registry) Close() error { panic("not built") }

// A Topic is one topic; immutable but for its logs. After a config change or growth there is
// another *Topic under the name, sharing the logs.
type Topic struct{ _ int }

// Name is the topic's name.
func (t *Topic) Name() string { panic("not built") }

// ID is its id.
func (t *Topic) ID() kafka.TopicID { panic("not built") }

// Partitions is the number of partitions.
func (t *Topic) Partitions() int32 { panic("not built") }

// Overrides are the configs set on the topic itself, not to be changed.
func (t *Topic) Overrides() map[string]string { panic("not built") }

// Log is the log of a partition, opened if need be.
// UNKNOWN_TOPIC_OR_PARTITION for a partition there is not (or a topic deleted meanwhile); KAFKA_STORAGE_ERROR for one that can't be opened.
func (t *Topic) Log(partition int32) (*commitlog.Log, error) { panic("not built") }

// ValidateName checks a topic name by Kafka's rules: INVALID_TOPIC_EXCEPTION with Kafka's text.
func ValidateName(name string) error { panic("not built") }
