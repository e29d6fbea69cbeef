package producer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/transcript"
)

// A partition drives a State as a log does: a batch is checked, gets the next
// offsets, and is taken in.
type partition struct {
	state State
	end   int64
}

// data makes a client's batch of n records; its payload is of no interest.
func data(t testing.TB, id int64, epoch int16, sequence int32, n int, timestamp int64, txn bool) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: id, Epoch: epoch, BaseSequence: sequence}, Transactional: txn})
	for range n {
		if err := b.Append(timestamp, nil, []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func marker(t testing.TB, id int64, epoch int16, kind record.ControlType, coordinatorEpoch int32, timestamp int64) record.Batch {
	t.Helper()
	b, err := record.NewMarker(record.Marker{Type: kind, CoordinatorEpoch: coordinatorEpoch}, id, epoch, timestamp)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p *partition) append(b record.Batch, verified Verified) string {
	repeat, isRepeat, err := p.state.Check(b, verified)
	switch {
	case err != nil:
		return code(err)
	case isRepeat:
		return fmt.Sprintf("repeat of offset %d timestamp %d", repeat.BaseOffset(), repeat.Timestamp)
	}
	return p.take(b)
}

func code(err error) string {
	ke, ok := errors.AsType[*kerr.Error](err)
	if !ok {
		return "not a Kafka error: " + err.Error()
	}
	return ke.Message
}

func (p *partition) take(b record.Batch) string {
	b.SetBaseOffset(p.end)
	aborted, err := p.state.Update(b)
	if err != nil {
		return err.Error()
	}
	p.end = b.LastOffset() + 1
	out := fmt.Sprintf("offsets %d-%d", b.BaseOffset(), b.LastOffset())
	if aborted != nil {
		out += fmt.Sprintf(" aborted %d from %d to %d, stable %d", aborted.ProducerID, aborted.First, aborted.Last, aborted.LastStable)
	}
	return out
}

func (p *partition) describe() string {
	var out strings.Builder
	for _, id := range p.state.IDs() {
		pr, _ := p.state.Lookup(id)
		fmt.Fprintf(&out, "producer %d epoch %d", id, pr.Epoch)
		if pr.CoordinatorEpoch >= 0 {
			fmt.Fprintf(&out, " coordinator %d", pr.CoordinatorEpoch)
		}
		fmt.Fprintf(&out, " last timestamp %d", pr.LastTimestamp)
		if pr.TxnFirstOffset >= 0 {
			fmt.Fprintf(&out, " open from %d", pr.TxnFirstOffset)
		}
		out.WriteString("\n")
		for _, b := range pr.Batches {
			fmt.Fprintf(&out, "  sequences %d-%d at offset %d\n", b.FirstSequence(), b.LastSequence, b.BaseOffset())
		}
	}
	if first, ok := p.state.FirstUnstable(); ok {
		fmt.Fprintf(&out, "unstable from %d\n", first)
	}
	if out.Len() == 0 {
		return "empty"
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// run does one command: a word and key=value arguments.
func (p *partition) run(t *testing.T, line string) string {
	fields := strings.Fields(line)
	args := map[string]int64{"n": 1, "ts": 1000}
	txn, verified, kind, bumped := false, Unverified, record.Commit, false
	for _, f := range fields[1:] {
		key, value, ok := strings.Cut(f, "=")
		switch {
		case ok:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			args[key] = n
		case f == "txn":
			txn, verified = true, VerifiedInTxn
		case f == "unverified":
			verified = Unverified
		case f == "added":
			verified = AddedByProduce
		case f == "bumped":
			bumped = true
		case f == "abort":
			kind = record.Abort
		}
	}
	id, epoch := args["id"], int16(args["epoch"])
	switch fields[0] {
	case "append":
		return p.append(data(t, id, epoch, int32(args["seq"]), int(args["n"]), args["ts"], txn), verified)
	case "marker":
		m := Marker{ProducerID: id, Epoch: epoch, CoordinatorEpoch: int32(args["coordinator"]), Bumped: bumped}
		if err := p.state.CheckMarker(m); err != nil {
			return code(err)
		}
		ended := ""
		if p.state.Ended(m) {
			ended = " again"
		}
		return p.take(marker(t, id, epoch, kind, m.CoordinatorEpoch, args["ts"])) + ended
	case "verify":
		ask, err := p.state.Unvouched(id, epoch)
		if err != nil {
			return code(err)
		}
		return fmt.Sprintf("ask %v", ask)
	case "open":
		epoch, first, ok := p.state.Open(id)
		return fmt.Sprintf("epoch %d first %d %v", epoch, first, ok)
	case "expire":
		return fmt.Sprintf("%d gone", p.state.Expire(args["now"], args["after"]))
	case "restart":
		s, at, err := Decode(p.state.Encode(nil, Binding{Offset: p.end, After: p.end > 0, CRC: 7}))
		if err != nil {
			return err.Error()
		}
		p.state = *s
		return fmt.Sprintf("state of offset %d", at.Offset)
	case "state":
		return p.describe()
	}
	t.Fatalf("unknown command %q", line)
	return ""
}

// TX-1, TX-2, ST-9: the transcripts in testdata are rules and documentation in
// one: blocks of commands, "----", what came out. -update writes them anew.
func TestTranscripts(t *testing.T) { transcript.Run(t, play) }

func play(t *testing.T, script string) string {
	var out strings.Builder
	p := &partition{}
	for block := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		out.WriteString(commands + "\n")
		var answers []string
		for line := range strings.SplitSeq(commands, "\n") {
			if line = strings.TrimSpace(line); line == "new" {
				p = &partition{}
			} else if line != "" && !strings.HasPrefix(line, "#") {
				answers = append(answers, p.run(t, line))
			}
		}
		if len(answers) > 0 {
			out.WriteString("----\n" + strings.Join(answers, "\n") + "\n")
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
