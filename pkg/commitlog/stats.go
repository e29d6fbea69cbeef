package commitlog

import "sync/atomic"

// Stats counts what the logs of a broker do, for metrics and benchmarks.
type Stats struct {
	Appends    atomic.Int64 // batches appended
	Bytes      atomic.Int64 // their bytes
	Duplicates atomic.Int64 // repeats of batches, acknowledged and not appended
	Refused    atomic.Int64 // appends refused because of their content
	Failed     atomic.Int64 // appends refused with KAFKA_STORAGE_ERROR
	Flushes    atomic.Int64 // times that a log was made durable
	Syncs      atomic.Int64 // the fsyncs and fdatasyncs that took
	Rolls      atomic.Int64 // segments rolled
	Removed    atomic.Int64 // segments removed
	Rewritten  atomic.Int64 // segments that compaction has rewritten
	Compacted  atomic.Int64 // bytes that compaction has read, each as often as it did
	Written    atomic.Int64 // bytes that it has written
	Reclaimed  atomic.Int64 // bytes by which it has made logs shorter
	Superseded atomic.Int64 // records that it has removed
	Unclean    atomic.Int64 // logs that it has given up (ST-63)
	Offline    atomic.Int64 // logs that have gone offline for writes (ST-61)
	Recovered  atomic.Int64 // bytes checked after unclean stops
	Cut        atomic.Int64 // bytes cut off as torn
}
