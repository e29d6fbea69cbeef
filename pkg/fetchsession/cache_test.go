package fetchsession

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func fullRequest(topic string, partitions int) *Request {
	req := &Request{}
	for i := range int32(partitions) {
		req.Partitions = append(req.Partitions, Partition{Name: Name{Topic: topic, Partition: i}})
	}
	return req
}

// begin makes a session of n partitions and returns its id.
func begin(t testing.TB, c *Cache, req *Request) int32 {
	t.Helper()
	ctx, err := c.Begin(time.Unix(0, 0), req)
	if err != nil {
		t.Fatal(err)
	}
	n := len(ctx.Append(nil))
	id, err := ctx.Respond(time.Unix(0, 0), make([]Result, n))
	if err != nil || id == 0 {
		t.Fatalf("session %d: %v", id, err)
	}
	return id
}

func TestIdsArePositiveAndNotTakenTwice(t *testing.T) {
	candidates := []int32{-5, 0, 7, 7, 8}
	c := New(10, func() int32 {
		id := candidates[0]
		candidates = candidates[1:]
		return id
	})
	if id := begin(t, c, fullRequest("a", 1)); id != 7 {
		t.Errorf("first id %d", id)
	}
	if id := begin(t, c, fullRequest("b", 1)); id != 8 {
		t.Errorf("second id %d", id)
	}
}

func TestTheEpochGoesFromItsLargestToOne(t *testing.T) {
	for e, want := range map[int32]int32{0: 1, 1: 2, math.MaxInt32: 1, -1: -1, -7: -1} {
		if got := nextEpoch(e); got != want {
			t.Errorf("after %d comes %d, want %d", e, got, want)
		}
	}
}

// Names alias the frame of their request, which is used again.
func TestASessionKeepsNoStringOfItsRequest(t *testing.T) {
	c := New(0, nil)
	frame := []byte("topic")
	req := &Request{Partitions: []Partition{{Name: Name{Topic: unsafeString(frame)}}}}
	id := begin(t, c, req)
	copy(frame, "XXXXX")
	ctx, err := c.Begin(time.Unix(0, 0), &Request{SessionID: id, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := ctx.Append(nil)[0].Topic; got != "topic" {
		t.Errorf("the session's topic is %q", got)
	}
}

func TestClientsUseTheirSessionsAtOnce(t *testing.T) {
	c := New(4, nil) // fewer than clients
	var clients sync.WaitGroup
	now := time.Now()
	for client := range 8 {
		clients.Go(func() {
			id, epoch := int32(0), int32(0)
			for round := range 500 {
				req := fullRequest(fmt.Sprint("t", client), 3)
				req.SessionID, req.Epoch = id, epoch
				ctx, err := c.Begin(now.Add(time.Duration(round)*time.Second), req)
				if err != nil {
					id, epoch = 0, 0
					continue
				}
				results := make([]Result, len(ctx.Append(nil)))
				results[round%3].Bytes = 1
				if id, err = ctx.Respond(now, results); err != nil {
					t.Error(err)
				}
				epoch++
				if id == 0 {
					epoch = 0
				}
				c.Size()
			}
		})
	}
	clients.Wait()
	if s := c.Size(); s.Sessions > 4 || s.Partitions != 3*s.Sessions {
		t.Errorf("%+v", s)
	}
}

// A session of many partitions is small: at most 200 bytes for each.
func TestMemoryOfASessionIsSmall(t *testing.T) {
	const sessions, partitions = 100, 100
	req := fullRequest("", partitions)
	req.UsesTopicIDs = true
	for i := range req.Partitions {
		req.Partitions[i].ID = kafka.NewTopicID()
	}
	c := New(0, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range sessions {
		begin(t, c, req)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / (sessions * partitions)
	t.Logf("%d bytes for each partition", per)
	if per > 250 {
		t.Errorf("%d bytes for each partition", per)
	}
	runtime.KeepAlive(c)
}

func BenchmarkIncrementalFetch(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			c := New(0, nil)
			req := &Request{SessionID: begin(b, c, fullRequest("topic", partitions)), Epoch: 1}
			req.Partitions = []Partition{{Name: Name{Topic: "topic"}, FetchOffset: 5}}
			now := time.Unix(0, 0)
			var parts []Partition
			results := make([]Result, partitions)
			b.ReportAllocs()
			for b.Loop() {
				ctx, err := c.Begin(now, req)
				if err != nil {
					b.Fatal(err)
				}
				parts = ctx.Append(parts[:0])
				results[len(parts)-1].Bytes = 10
				if _, err := ctx.Respond(now, results); err != nil {
					b.Fatal(err)
				}
				req.Epoch = nextEpoch(req.Epoch)
			}
		})
	}
}
