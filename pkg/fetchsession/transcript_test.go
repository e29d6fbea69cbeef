package fetchsession

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/transcript"
)

// Transcripts are conversations of clients with one cache. A command is a line;
// what it prints is behind "-> ", and held against what is there. Commands:
//
//	cache SLOTS                          a new cache; ids are 1, 2, 3 ...
//	advance DURATION
//	fetch ID EPOCH [as=NAME] [ids] [TOPIC-P[@OFFSET] ...] [forget=TOPIC-P ...]
//	      Begin; prints the partitions to read, or the error
//	respond [as=NAME] [TOPIC-P:FIELD=N,FIELD ...]
//	      Respond; fields hw, start, bytes, error, diverging, redirected; those
//	      not given are 0, and all of a partition that is not named
//	size  prints sessions, partitions, evictions
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T, script string) string { return (&player{t: t}).play(script) })
}

type player struct {
	t        *testing.T
	cache    *Cache
	now      time.Time
	contexts map[string]*Context
	parts    map[string][]Partition
}

func (p *player) play(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "-> ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if answer := p.command(strings.Fields(line)); answer != "" {
			out.WriteString("-> " + answer + "\n")
		}
	}
	return out.String()
}

func (p *player) command(words []string) string {
	switch words[0] {
	case "cache":
		var last int32
		p.cache = New(p.number(words[1]), func() int32 { last++; return last })
		p.now = time.Unix(1e9, 0)
		p.contexts, p.parts = map[string]*Context{}, map[string][]Partition{}
		return ""
	case "advance":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = p.now.Add(d)
		return ""
	case "fetch":
		return p.fetch(words[1:])
	case "respond":
		return p.respond(words[1:])
	case "size":
		s := p.cache.Size()
		return fmt.Sprintf("%d sessions, %d partitions, %d evictions", s.Sessions, s.Partitions, s.Evictions)
	}
	p.t.Fatalf("unknown command %q", words[0])
	return ""
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// name parses TOPIC-P.
func (p *player) name(s string, ids bool) Name {
	topic, partition, _ := strings.Cut(s, "-")
	n := Name{Topic: topic, Partition: int32(p.number(partition))}
	if ids {
		copy(n.ID[:], topic)
		n.Topic = ""
	}
	return n
}

func printed(n Name) string {
	if n.ID != (kafka.TopicID{}) {
		n.Topic = "id:" + strings.TrimRight(string(n.ID[:]), "\x00")
	}
	return n.Topic + "-" + strconv.Itoa(int(n.Partition))
}

func (p *player) fetch(words []string) string {
	req := Request{SessionID: int32(p.number(words[0])), Epoch: int32(p.number(words[1]))}
	as := ""
	for _, w := range words[2:] {
		if w == "ids" {
			req.UsesTopicIDs = true
		} else if name, ok := strings.CutPrefix(w, "as="); ok {
			as = name
		} else if name, ok := strings.CutPrefix(w, "forget="); ok {
			req.Forgotten = append(req.Forgotten, p.name(name, req.UsesTopicIDs))
		} else {
			name, offset, _ := strings.Cut(w, "@")
			part := Partition{Name: p.name(name, req.UsesTopicIDs), MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStart: -1}
			if offset != "" {
				part.FetchOffset = int64(p.number(offset))
			}
			req.Partitions = append(req.Partitions, part)
		}
	}
	ctx, err := p.cache.Begin(p.now, &req)
	if err != nil {
		return kerrName(err)
	}
	p.contexts[as], p.parts[as] = ctx, ctx.Append(nil)
	kind := "full"
	if ctx.session != nil {
		kind = "incremental"
	}
	for _, part := range p.parts[as] {
		kind += fmt.Sprintf(" %s@%d", printed(part.Name), part.FetchOffset)
	}
	return kind
}

func kerrName(err error) string {
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Message
	}
	return "not a Kafka error: " + err.Error()
}

func (p *player) respond(words []string) string {
	as := ""
	given := map[string]Result{}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "as="); ok {
			as = name
			continue
		}
		name, fields, _ := strings.Cut(w, ":")
		var r Result
		for f := range strings.SplitSeq(fields, ",") {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "hw":
				r.HighWatermark = int64(p.number(value))
			case "start":
				r.LogStart = int64(p.number(value))
			case "bytes":
				r.Bytes = p.number(value)
			case "error":
				r.Error = true
			case "diverging":
				r.Diverging = true
			case "redirected":
				r.Redirected = true
			default:
				p.t.Fatalf("unknown field %q", f)
			}
		}
		given[name] = r
	}
	results := make([]Result, len(p.parts[as]))
	for i, part := range p.parts[as] {
		results[i] = given[strings.TrimPrefix(printed(part.Name), "id:")]
	}
	id, err := p.contexts[as].Respond(p.now, results)
	if err != nil {
		return fmt.Sprintf("session %d %s", id, kerrName(err))
	}
	var told []string
	for i, part := range p.parts[as] {
		if results[i].Include {
			told = append(told, printed(part.Name))
		}
	}
	return strings.TrimSpace(fmt.Sprintf("session %d %s", id, strings.Join(slices.Clip(told), " ")))
}
