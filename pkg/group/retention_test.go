package group

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// GR-7: offsets expire when Kafka's do. The script was played with a real Kafka, which waits for its minutes; its answers are the lines with "|".
func TestOffsetsExpireAsKafkas(t *testing.T) {
	script, err := os.ReadFile("../../conformance/retention/testdata/offset-retention.txt")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.OffsetsRetentionMinutes = 1
		r := &retention{kit: k, members: map[string]*member{}, started: time.Now()}
		var want, got []string
		for line := range strings.Lines(string(script)) {
			if answer, ok := strings.CutPrefix(line, "| "); ok {
				want = append(want, strings.TrimSpace(answer))
			} else if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
				got = append(got, r.do(words)...)
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("got\n%s\nKafka\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// retention plays the lines of the script.
type retention struct {
	*kit
	members map[string]*member
	groups  []string // in the order in which they are named
	started time.Time
}

func (r *retention) do(words []string) (shown []string) {
	r.Helper()
	if len(words) > 1 && words[0] != "at" && !slices.Contains(r.groups, words[1]) {
		r.groups = append(r.groups, words[1])
	}
	switch words[0] {
	case "commit":
		topics, own := words[2:], time.Duration(-1)
		if i := slices.Index(topics, "retention"); i >= 0 {
			topics, own = topics[:i], r.duration(topics[i+1])
		}
		for _, topic := range topics {
			r.want(r.CommitOffsets(r.Context(), &CommitRequest{Group: words[1], Generation: -1, Version: 2, Retention: own,
				Offsets: []OffsetToCommit{{Topic: topic, TopicID: r.topics[topic], Offset: 1, LeaderEpoch: -1}}})[0], nil)
		}
	case "join": // topic t, as all members of the kit
		r.members[words[1]] = r.alone(words[1])
	case "leave":
		r.want(r.members[words[1]].leave(), nil)
		delete(r.members, words[1])
	case "at":
		r.until(r.started.Add(r.duration(words[1])))
	case "show":
		for _, group := range r.groups {
			shown = append(shown, r.show(group))
		}
	default:
		r.Fatalf("nothing is known about %q", words)
	}
	return shown
}

// until lets time pass. Members send heartbeats, and what is expired is looked for, each second.
func (r *retention) until(end time.Time) {
	r.Helper()
	for time.Now().Before(end) {
		pass(time.Second)
		for _, m := range r.members {
			r.want(m.heartbeat(), nil)
		}
		if _, err := r.ExpireOffsets(r.Context()); err != nil {
			r.Error(err)
		}
	}
}

func (r *retention) duration(text string) time.Duration {
	r.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

func (r *retention) show(group string) string {
	r.Helper()
	line := fmt.Sprintf("%s %s", group, r.state(group))
	fetched := r.FetchOffsets(&FetchOffsetsRequest{Group: group, All: true})
	if fetched.Err != nil {
		r.Fatal(fetched.Err)
	}
	for _, o := range fetched.Offsets {
		line += " " + o.Topic
	}
	return line
}
