package txn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/transcript"
)

// TX-3, TX-4, TX-5, TX-7: the state machine says in testdata/ what Kafka's does.
//
//	new id=7               a transactional id with producer id 7, before its first epoch
//	set epoch=3 phase=Ongoing pid=7 prev=-1 last=2   a state that would take long to come to
//	init [pid=7 epoch=0]   InitProducerId; fresh=9 is the producer id it gets if it needs one
//	add a-0 b-1 g:group [v2]; verify a-0    all of pid=, epoch= default to the current ones
//	end commit|abort [v5]
//	complete               the markers are written
//	timeout; expire; advance 10
func TestTranscripts(t *testing.T) { transcript.Run(t, play) }

type player struct {
	s   State
	now int64
}

func play(t *testing.T, script string) string {
	p := &player{now: 1000}
	var out strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "->") {
			continue
		}
		out.WriteString(line)
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&out, "-> %s\n", p.do(t, strings.Fields(line)))
	}
	return out.String()
}

// number is the value of name=value among the words.
func number(t *testing.T, words []string, name string, other int64) int64 {
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return other
}

func (p *player) do(t *testing.T, words []string) string {
	arg := func(name string, other int64) int64 { return number(t, words, name, other) }
	pid, epoch, fresh := arg("pid", p.s.ProducerID), int16(arg("epoch", int64(p.s.Epoch))), arg("fresh", noID)
	switch words[0] {
	case "new":
		p.s = newState("tx", arg("id", 0))
	case "advance":
		n, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p.now += n
	case "set":
		p.set(t, words)
	case "init":
		var e *Expected
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "epoch=") }) {
			e = &Expected{ProducerID: pid, Epoch: epoch}
		}
		return p.to(p.s.init(int32(arg("timeout", 60)), e, fresh, p.now))
	case "add":
		partitions, groups := participants(words)
		n, changed, err := p.s.add(pid, epoch, partitions, groups, slices.Contains(words, "v2"), p.now)
		if err == nil && !changed {
			return "unchanged"
		}
		return p.to(n, err)
	case "verify":
		partitions, _ := participants(words)
		if err := p.s.check(pid, epoch); err != nil {
			return name(err)
		}
		for _, err := range p.s.missing(partitions) {
			if err != nil {
				return name(err)
			}
		}
		return "ok"
	case "end":
		n, repeat, err := p.s.end(ending{pid, epoch, words[1] == "commit", slices.Contains(words, "v5")}, fresh, p.now)
		if repeat {
			return fmt.Sprintf("repeat: producer %d epoch %d", n.ProducerID, n.Epoch)
		}
		return p.to(n, err)
	case "complete":
		id, epoch, commit := p.s.marker()
		n := p.s.complete(p.now)
		if again, e, c := n.marker(); again != id || e != epoch || c != commit {
			t.Fatalf("the markers of a completed transaction are of %d %d %v, and were of %d %d %v", again, e, c, id, epoch, commit)
		}
		done, _ := p.to(n, nil), 0
		return fmt.Sprintf("markers of %d epoch %d commit %v; %s", id, epoch, commit, done)
	case "timeout":
		if !p.s.timedOut(p.now) {
			return "not yet"
		}
		return p.to(p.s.fence(fresh, p.now))
	case "expire":
		return strconv.FormatBool(p.s.expired(p.now, arg("after", 100)))
	default:
		t.Fatalf("unknown command %q", words)
	}
	return show(p.s)
}

func (p *player) set(t *testing.T, words []string) {
	p.s.ProducerID, p.s.PreviousID = number(t, words, "pid", p.s.ProducerID), number(t, words, "prev", p.s.PreviousID)
	p.s.Epoch, p.s.LastEpoch = int16(number(t, words, "epoch", int64(p.s.Epoch))), int16(number(t, words, "last", int64(p.s.LastEpoch)))
}

func (p *player) to(n State, err error) string {
	if err != nil {
		return name(err)
	}
	p.s = n
	return show(n)
}

func name(err error) string {
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func participants(words []string) (partitions []metastore.TxnPartition, groups []string) {
	for _, w := range words[1:] {
		if g, ok := strings.CutPrefix(w, "g:"); ok {
			groups = append(groups, g)
		} else if topic, n, ok := strings.Cut(w, "-"); ok {
			i, _ := strconv.Atoi(n)
			partitions = append(partitions, metastore.TxnPartition{Topic: topic, Partition: int32(i)})
		}
	}
	return partitions, groups
}

func show(s State) string {
	out := fmt.Sprintf("%s producer %d epoch %d", s.Phase, s.ProducerID, s.Epoch)
	if s.LastEpoch != noEpoch {
		out += fmt.Sprintf(" last %d", s.LastEpoch)
	}
	if s.PreviousID != s.ProducerID && s.PreviousID != noID {
		out += fmt.Sprintf(" before %d", s.PreviousID)
	}
	if s.NextID != noID {
		out += fmt.Sprintf(" next %d", s.NextID)
	}
	if s.Start >= 0 {
		out += fmt.Sprintf(" since %d", s.Start)
	}
	for _, p := range s.Partitions {
		out += fmt.Sprintf(" %s-%d", p.Topic, p.Partition)
	}
	for _, g := range s.Groups {
		out += " g:" + g
	}
	for _, p := range s.Settling {
		out += fmt.Sprintf(" settling %s-%d", p.Topic, p.Partition)
	}
	return out
}
