package history_test

import (
	"math"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// A log is what a broker has of a partition: at each offset a value, nil for a control record.
type log [][]byte

func logOf(batches ...history.Batch) (l log) {
	for _, b := range batches {
		l = append(l, b.Values()...)
	}
	return l
}

func read(c *history.Check, part int32, start int64, l log) {
	r := c.Read("a", part, start)
	give(r, start, l)
}

func give(r *history.Reading, start int64, l log) {
	for i, v := range l[start:] {
		if v == nil {
			r.Control(start + int64(i))
		} else {
			r.Record(start+int64(i), v)
		}
	}
	r.End(int64(len(l)), false)
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixture has two batches of one producer, at 0 and 2, and one of another, at 3.
func fixture(t *testing.T) (h *history.History, one, two, other history.Batch) {
	h = history.New()
	h.Topic("a", 2)
	one, two = h.Send("a", 0, 1, 2, -1), h.Send("a", 0, 1, 1, -1)
	other = h.Send("a", 0, 2, 2, -1)
	noError(t, h.Ack(one, 0, true))
	noError(t, h.Ack(two, 2, false))
	return h, one, two, other
}

// ST-71, ST-73: each promise, kept and broken.
func TestTheCheckFindsEachBrokenPromise(t *testing.T) {
	for name, c := range map[string]struct {
		want history.Kind // "": nothing is wrong
		loss history.Loss
		do   func(h *history.History, c *history.Check, one, two, other history.Batch)
	}{
		"all is there": {"", history.Kill, func(_ *history.History, c *history.Check, one, two, other history.Batch) {
			read(c, 0, 0, logOf(one, two, other))
		}},
		"what nobody answered is not there": {"", history.Kill, func(_ *history.History, c *history.Check, one, two, _ history.Batch) {
			read(c, 0, 0, logOf(one, two))
		}},
		"a power cut takes what is not durable": {"", history.PowerCut, func(_ *history.History, c *history.Check, one, _, _ history.Batch) {
			read(c, 0, 0, logOf(one))
		}},
		"a kill does not": {history.Lost, history.Kill, func(_ *history.History, c *history.Check, one, _, _ history.Batch) {
			read(c, 0, 0, logOf(one))
		}},
		"a power cut does not take what is durable": {history.Lost, history.PowerCut, func(_ *history.History, c *history.Check, _, _, _ history.Batch) {
			read(c, 0, 0, nil)
		}},
		"nor what was acknowledged before a durable one": {history.Lost, history.PowerCut, func(h *history.History, c *history.Check, one, _, other history.Batch) {
			_ = h.Ack(other, 3, true)
			read(c, 0, 0, logOf(one))
		}},
		"nor anything after a clean stop": {history.Lost, history.PowerCut, func(h *history.History, c *history.Check, one, _, _ history.Batch) {
			h.Flushed("a", 0)
			read(c, 0, 0, logOf(one))
		}},
		"what is acknowledged after a clean stop can go": {"", history.PowerCut, func(h *history.History, c *history.Check, one, two, other history.Batch) {
			h.Flushed("a", 0)
			noError(t, h.Ack(other, 3, false))
			read(c, 0, 0, logOf(one, two))
		}},
		"a record twice": {history.Duplicated, history.Kill, func(_ *history.History, c *history.Check, one, two, _ history.Batch) {
			read(c, 0, 0, logOf(one, two, two))
		}},
		"out of order": {history.Disorder, history.Kill, func(h *history.History, c *history.Check, one, two, _ history.Batch) {
			third := h.Send("a", 0, 1, 1, -1)
			fourth := h.Send("a", 0, 1, 1, -1)
			read(c, 0, 0, logOf(one, two, fourth, third))
		}},
		"an offset is left out": {history.Gap, history.Kill, func(_ *history.History, c *history.Check, one, _, other history.Batch) {
			r := c.Read("a", 0, 0)
			for i, v := range one.Values() {
				r.Record(int64(i), v)
			}
			r.Record(3, other.Value(0))
			r.End(4, false)
		}},
		"the log ends behind its last record": {history.Gap, history.Kill, func(_ *history.History, c *history.Check, one, two, _ history.Batch) {
			r := c.Read("a", 0, 0)
			for i, v := range logOf(one, two) {
				r.Record(int64(i), v)
			}
			r.End(7, false)
		}},
		"another offset than was told": {history.Moved, history.Kill, func(_ *history.History, c *history.Check, one, two, other history.Batch) {
			read(c, 0, 0, logOf(one, other, two))
		}},
		"a flipped bit": {history.Invented, history.Kill, func(_ *history.History, c *history.Check, one, two, _ history.Batch) {
			l := logOf(one, two)
			l[2][len(l[2])-1] ^= 1
			read(c, 0, 0, l)
		}},
		"a record of another partition": {history.Invented, history.Kill, func(h *history.History, c *history.Check, one, two, _ history.Batch) {
			read(c, 0, 0, logOf(one, two, h.Send("a", 1, 1, 1, -1)))
		}},
		"a record of a deleted topic of the name": {history.Invented, history.Kill, func(h *history.History, c *history.Check, _, _, _ history.Batch) {
			old := h.Send("a", 1, 1, 1, -1)
			h.Topic("a", 2)
			h.Send("a", 1, 1, 1, -1)
			read(c, 1, 0, logOf(old))
		}},
		"what was refused": {history.Denied, history.Kill, func(h *history.History, c *history.Check, one, two, other history.Batch) {
			h.Refuse(other)
			read(c, 0, 0, logOf(one, two, other))
		}},
		"half a batch": {history.Torn, history.Kill, func(_ *history.History, c *history.Check, one, two, other history.Batch) {
			read(c, 0, 0, logOf(one, two, other)[:4])
		}},
		"the other half": {history.Torn, history.Kill, func(_ *history.History, c *history.Check, one, two, other history.Batch) {
			read(c, 0, 0, append(logOf(one, two), other.Value(1)))
		}},
		"a batch with another within": {history.Torn, history.Kill, func(h *history.History, c *history.Check, one, two, other history.Batch) {
			third := h.Send("a", 0, 1, 1, -1)
			read(c, 0, 0, append(logOf(one, two), other.Value(0), third.Value(0), other.Value(1)))
		}},
		"a log start within a batch that was asked for": {"", history.Kill, func(h *history.History, c *history.Check, one, two, _ history.Batch) {
			h.MayStart("a", 0, 1)
			noError(t, h.Starts("a", 0, 1))
			read(c, 0, 1, logOf(one, two))
		}},
		"a log start that nobody asked for": {history.Start, history.Kill, func(h *history.History, c *history.Check, one, two, _ history.Batch) {
			h.MayStart("a", 0, 1)
			read(c, 0, 2, logOf(one, two))
		}},
		"a log start that goes back": {history.Start, history.Kill, func(h *history.History, c *history.Check, one, two, _ history.Batch) {
			h.MayStart("a", 0, math.MaxInt64)
			noError(t, h.Starts("a", 0, 2))
			read(c, 0, 1, logOf(one, two))
		}},
		"a fact": {history.Fact, history.Kill, func(h *history.History, c *history.Check, _, _, _ history.Batch) {
			h.Promise(map[string]string{"topic a": "2"})
			c.Fact("topic a", history.None)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, one, two, other := fixture(t)
			check := h.Check(c.loss)
			c.do(h, check, one, two, other)
			check.Done()
			if c.want == "" {
				noError(t, check.Err())
				return
			}
			if check.Count(c.want) == 0 {
				t.Errorf("%q is not found: %v", c.want, check.Violations)
			}
		})
	}
}

// What a reading has found is promised from then on, and what it has not found stays away.
func TestASettledReadingIsAPromise(t *testing.T) {
	h, one, two, other := fixture(t)
	r := h.Check(history.PowerCut).Read("a", 0, 0)
	for i, v := range logOf(one, other) {
		r.Record(int64(i), v)
	}
	r.End(4, true)
	for name, c := range map[string]struct {
		log  log
		want history.Kind
	}{
		"the same":               {logOf(one, other), ""},
		"less":                   {logOf(one), history.Lost},
		"what was taken is back": {logOf(one, other, two), history.Denied},
	} {
		check := h.Check(history.PowerCut)
		read(check, 0, 0, c.log)
		if c.want == "" && check.Err() != nil || c.want != "" && check.Count(c.want) == 0 {
			t.Errorf("%s: %v", name, check.Violations)
		}
	}
}
