package broker

import (
	"strconv"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/control"
	"github.com/dozekafka/doze-kafka/pkg/handler"
)

// metrics are the broker's own figures for /metrics.
func (b *Broker) metrics() []control.Metric {
	net, logs := b.server.Stats(), b.storage.stats
	count := func(name string, n *atomic.Int64) control.Metric {
		return control.Metric{Name: "doze_kafka_" + name + "_total", Counter: true, Read: func() float64 { return float64(n.Load()) }}
	}
	gauge := func(name string, read func() int) control.Metric {
		return control.Metric{Name: "doze_kafka_" + name, Read: func() float64 { return float64(read()) }}
	}
	all := []control.Metric{
		gauge(`info{version=`+strconv.Quote(b.opts.version)+`}`, func() int { return 1 }),
		gauge("topics", func() int { return len(b.storage.topics.All()) }),
		gauge("open_logs", b.storage.topics.OpenLogs),
		gauge("fetch_sessions", func() int { return b.sessions.Size().Sessions }),
		gauge("connections_open", func() int { return int(net.ConnectionsOpen.Load()) }),
		gauge("request_bytes_in_memory", func() int { return int(net.RequestBytesInMemory()) }),
		count("connections", &net.ConnectionsTotal),
		count("connections_failed", &net.ConnectionsFailed),
		count("received_bytes", &net.BytesIn),
		count("sent_bytes", &net.BytesOut),
		count("sent_file_bytes", &net.FileBytesOut),
		count("handler_errors", &net.HandlerErrors),
		count("appended_batches", &logs.Appends),
		count("appended_bytes", &logs.Bytes),
		count("duplicate_batches", &logs.Duplicates),
		count("refused_batches", &logs.Refused),
		count("failed_appends", &logs.Failed),
		count("flushes", &logs.Flushes),
		count("fsyncs", &logs.Syncs),
		count("segment_rolls", &logs.Rolls),
		count("removed_segments", &logs.Removed),
		count("compacted_segments", &logs.Rewritten),
		count("compaction_read_bytes", &logs.Compacted),
		count("compaction_written_bytes", &logs.Written),
		count("compaction_reclaimed_bytes", &logs.Reclaimed),
		count("compaction_removed_records", &logs.Superseded),
		count("uncleanable_partitions", &logs.Unclean),
		count("offline_partitions", &logs.Offline),
		count("recovered_bytes", &logs.Recovered),
		count("cut_bytes", &logs.Cut),
		gauge("ongoing_transactions", b.storage.txns.Ongoing),
		count("committed_transactions", &b.storage.txns.Stats().Committed),
		count("aborted_transactions", &b.storage.txns.Stats().Aborted),
		count("timed_out_transactions", &b.storage.txns.Stats().TimedOut),
	}
	for key, name := range handler.Names() {
		all = append(all, control.Metric{
			Name: `doze_kafka_requests_total{api="` + name + `"}`, Counter: true,
			Read: func() float64 { return float64(net.Requests(key)) },
		})
	}
	return all
}
