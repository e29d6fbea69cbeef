package dump

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/pkg/producer"
)

// mostSnapshot is the largest snapshot that is read, about a million producers.
const mostSnapshot = 256 << 20

// snapshot prints a .snapshot: the producers' state at its offset.
func (p *printer) snapshot(src *source, base int64) error {
	if src.size > mostSnapshot {
		p.faultf("larger than %d MiB, which no snapshot is", mostSnapshot>>20)
		return nil
	}
	content, err := src.read(0, int(src.size))
	if err != nil {
		return err
	}
	state, bound, err := producer.Decode(content)
	if err != nil {
		p.faultf("%v (Kafka's own snapshots have another layout)", err)
		return nil
	}
	after := "no batch is before it"
	if bound.After {
		after = fmt.Sprintf("the batch before it has crc 0x%08x", bound.CRC)
	}
	p.linef("state of offset %d; %s", bound.Offset, after)
	if bound.Offset != base {
		p.faultf("its name says offset %d", base)
	}
	p.linef("%12s %7s %12s %-24s %12s  %s", "producer", "p.epoch", "coordinator", "last timestamp", "open since", "batches: offsets/sequences")
	for _, id := range state.IDs() {
		p.producer(state, id)
	}
	p.endf("%s", counted(int64(state.Len()), "producer"))
	return nil
}

func (p *printer) producer(state *producer.State, id int64) {
	pr, _ := state.Lookup(id)
	coordinator, since, batches := "-", "-", ""
	if pr.CoordinatorEpoch >= 0 {
		coordinator = fmt.Sprint(pr.CoordinatorEpoch)
	}
	if pr.TxnFirstOffset >= 0 {
		since = fmt.Sprint(pr.TxnFirstOffset)
	}
	for _, b := range pr.Batches {
		batches += fmt.Sprintf(" %d-%d/%d-%d", b.BaseOffset(), b.LastOffset, b.FirstSequence(), b.LastSequence)
	}
	p.linef("%12d %7d %12s %-24s %12s %s", id, pr.Epoch, coordinator, at(pr.LastTimestamp), since, batches)
}
