package endpoint

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FX-13: who was told an address and never came to it is reported once; who came, left, or has nothing to do is not.
func TestClientsThatNeverComeAreReportedOnce(t *testing.T) {
	me := Client{"PLAINTEXT", netip.MustParseAddr("172.18.0.1"), "app"}
	for _, test := range []struct {
		name  string
		act   func(*Watch)
		after time.Duration // of the report; 0: none
	}{
		{"asks again and again", func(w *Watch) {
			for range 100 {
				w.Told(me, 1, "localhost:9092")
				time.Sleep(time.Second)
			}
		}, askedTwice},
		{"holds its connection and waits", func(w *Watch) { w.Told(me, 1, "localhost:9092") }, connected},
		{"connects anew for each question", func(w *Watch) {
			for i := range uint64(50) {
				w.Told(me, i, "localhost:9092")
				w.Closed(i)
				time.Sleep(time.Second)
			}
		}, askedTwice},
		{"came", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Came(me)
			w.Told(me, 1, "localhost:9092")
			w.Told(me, 2, "localhost:9092")
		}, 0},
		{"asked once and left", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Closed(1)
		}, 0},
		{"is an admin tool that only ever asks", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			for range 20 {
				w.Told(me, 2, "localhost:9092")
				time.Sleep(time.Second)
			}
		}, 0},
		{"asks again where it was told, and only holds its first connection", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Told(me, 2, "localhost:9092")
		}, 0},
		{"asks again where it was told, and leaves", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Told(me, 2, "localhost:9092")
			w.Closed(1)
			w.Closed(2)
		}, 0},
		{"asks on two connections, on the first one again and again", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Told(me, 2, "localhost:9092")
			time.Sleep(burst)
			w.Told(me, 1, "localhost:9092")
		}, askedTwice},
		{"asks twice at once, and only holds its connection", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			time.Sleep(burst - 1)
			w.Told(me, 1, "localhost:9092")
		}, connected},
		{"sends what goes to either address on a connection of its own", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Sent(me, 2)
		}, 0},
		{"sends what goes to either address where it asks", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Sent(me, 1)
		}, connected},
		{"connects anew, and sends what goes to either address there", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Closed(1)
			w.Sent(me, 2)
			time.Sleep(burst)
			w.Told(me, 2, "localhost:9092")
		}, askedTwice},
		{"was cut off by a stop", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Told(me, 1, "localhost:9092")
			w.Stop()
			w.Told(me, 1, "localhost:9092")
		}, 0},
		{"another program came", func(w *Watch) {
			w.Told(me, 1, "localhost:9092")
			w.Came(Client{me.Listener, me.Host, "other"})
		}, connected},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var reports []time.Duration
				w := NewWatch(func(a Astray) {
					if a.Client != me || a.Told != "localhost:9092" || a.Idle != (test.after == connected) {
						t.Errorf("reported %+v", a)
					}
					reports = append(reports, time.Since(began))
				})
				go test.act(w)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if test.after == 0 && len(reports) > 0 || test.after > 0 && (len(reports) != 1 || reports[0] != test.after) {
					t.Errorf("reported at %v, want %v", reports, test.after)
				}
				if n := w.pending.Load(); n != 0 {
					t.Errorf("%d are pending", n)
				}
			})
		})
	}
}

func TestWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		w := NewWatch(func(Astray) {})
		for i := range maxClients + 10 {
			w.Told(Client{ID: fmt.Sprint(i)}, uint64(i), "a:1")
		}
		if len(w.clients) != maxClients {
			t.Errorf("%d clients are kept", len(w.clients))
		}
		w.Stop()
	})
}

// FX-13: clients that came where they were told make room for those that ask after them.
func TestASettledClientMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := make(chan Astray, 1)
		w := NewWatch(func(a Astray) { reported <- a })
		defer w.Stop()
		for i := range maxClients {
			c := Client{ID: fmt.Sprint(i)}
			w.Told(c, uint64(i), "a:1")
			w.Came(c)
		}
		late := Client{ID: strings.Repeat("x", 2*maxID)}
		w.Told(late, maxClients, "a:1")
		w.Told(late, maxClients, "a:1")
		if len(w.clients) != maxClients {
			t.Errorf("%d clients are kept", len(w.clients))
		}
		if got := <-reported; got.ID != late.ID[:maxID] {
			t.Errorf("reported %d bytes of the client.id", len(got.ID))
		}
	})
}

func BenchmarkCame(b *testing.B) {
	w := NewWatch(func(Astray) {})
	b.ReportAllocs()
	for b.Loop() {
		w.Came(Client{ID: "app"})
	}
}
