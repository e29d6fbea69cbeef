package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// withSize puts a size field before b.
func withSize(size int32, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(size)), b...)
}

func header(key, version int16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 1)
	return binary.BigEndian.AppendUint16(b, 0xffff) // no client id
}

// A frame that can't be a request closes its connection without an answer, and
// harms no other.
func TestMalformedFramesCloseTheirConnectionOnly(t *testing.T) {
	good := frameOf(metadata(12), 1)
	createTopics := kmsg.NewPtrCreateTopicsRequest()
	createTopics.SetVersion(7)
	createTopics.Topics = append(createTopics.Topics, kmsg.NewCreateTopicsRequestTopic())
	full := frameOf(createTopics, 1)
	cut := full[4 : len(full)-5]
	for name, frame := range map[string][]byte{
		"zero length":              withSize(0, nil),
		"negative size":            withSize(-1, good[4:]),
		"most negative size":       withSize(-1<<31, good[4:]),
		"oversized":                withSize(1<<20+1, good[4:]),
		"shorter than a header":    withSize(9, make([]byte, 9)),
		"unknown API":              withSize(10, header(999, 0)),
		"negative API":             withSize(10, header(-1, 0)),
		"API that is not spoken":   withSize(10, header(11, 0)),
		"version above max":        withSize(10, header(3, 14)),
		"version below min":        withSize(10, header(0, 2)),
		"negative version":         withSize(10, header(3, -1)),
		"client id cut short":      withSize(10, append(header(3, 0)[:8], 0, 9)),
		"header tags missing":      withSize(10, header(3, 9)),
		"header tags cut short":    withSize(13, append(header(3, 9), 1, 0, 9)),
		"header tag count too big": withSize(15, append(header(3, 9), 0xff, 0xff, 0xff, 0xff, 0x0f)),
		"header tag count endless": withSize(16, append(header(3, 9), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
		"no body":                  withSize(11, append(header(3, 9), 0)),
		"body cut short":           withSize(int32(len(cut)), cut),
		"array longer than frame":  withSize(14, append(header(3, 0), 0x7f, 0xff, 0xff, 0xff)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startPipe(t, Options{SocketRequestMaxBytes: 1 << 20})
				bystander := f.connect()
				w := f.connect()
				go func() { _, _ = w.Write(frame) }() // the server may close before it has read all
				w.wantClosed()
				bystander.send(good)
				bystander.wantCorrelation(1)
				bystander.close()
				f.roundTrip()
				if n := f.s.stats.ConnectionsFailed.Load(); n != 1 {
					t.Errorf("%d failed connections were counted, want 1", n)
				}
				f.stop()
			})
		})
	}
}

func TestRepliesBeforeAMalformedFrameAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		w := f.connect()
		w.send(frameOf(produce(-1, "a", nil), 1), withSize(10, header(999, 0)))
		synctest.Wait()
		close(g.open["a"])
		w.wantCorrelation(1)
		w.wantClosed()
		f.stop()
	})
}

// As in Kafka, bytes behind a body are ignored.
func TestExtraBytesAfterABodyAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{})
		w := f.connect()
		b := append(frameOf(metadata(12), 3)[4:], "trailing"...)
		w.send(withSize(int32(len(b)), b))
		w.wantCorrelation(3)
		w.close()
		f.stop()
	})
}

func TestAConnectionThatEndsWithinAFrameHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{})
		for _, n := range []int{2, 4, 5, 9, 40} {
			w := f.connect()
			w.send(frameOf(produce(-1, "topic", make([]byte, 100)), 1)[:n])
			w.close()
		}
		synctest.Wait()
		f.stop()
	})
}

// A frame of any length arrives whole, whatever the pieces it came in.
func TestFramesArriveWholeInPiecesOfAnySize(t *testing.T) {
	for _, size := range []int{0, 1, readBufBytes - 60, readBufBytes, firstStep, firstStep + 1, flowingStep + 1, 3 << 20, 9 << 20} {
		records := make([]byte, size)
		for i := range records {
			records[i] = byte(i * 31 >> 3)
		}
		frame := frameOf(produce(-1, "topic", records), 1)
		for _, piece := range []int{len(frame), 8 << 10, 1000} {
			if size > 1<<20 && piece == 1000 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
					got := req.Body.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
					if string(got) != string(records) {
						t.Errorf("%d bytes in pieces of %d arrived changed", size, piece)
					}
					return answer(req)
				}}})
				w := f.connect()
				go func() {
					for rest := frame; len(rest) > 0; {
						n := min(piece, len(rest))
						if _, err := w.Write(rest[:n]); err != nil {
							t.Error(err)
							return
						}
						rest = rest[n:]
					}
				}()
				w.wantCorrelation(1)
				w.close()
				f.stop()
			})
		}
	}
}

// FX-8: a connection that announces 90 MiB and sends nothing holds nothing, and
// delays nobody.
func TestAnAnnouncedFrameHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{RequestMemoryBytes: 1 << 20})
		var silent []*wire
		for range 100 {
			w := f.connect()
			w.send(withSize(90<<20, nil))
			silent = append(silent, w)
		}
		synctest.Wait()
		if n := f.s.stats.RequestBytesInMemory(); n != 0 {
			t.Errorf("%d bytes are charged for frames of which nothing has come", n)
		}
		start := time.Now()
		f.roundTrip()
		if time.Since(start) != 0 {
			t.Error("another connection was delayed")
		}
		for _, w := range silent {
			w.close()
		}
		f.stop()
	})
}

// Random bytes as the input of a connection: the server does not panic, does
// not allocate out of proportion, and answers the next client.
func FuzzFrame(f *testing.F) {
	f.Add(frameOf(metadata(12), 1))
	f.Add(frameOf(produce(-1, "topic", []byte("records")), 1))
	f.Add(frameOf(produce(0, "topic", nil), 1))
	f.Add(frameOf(fetch(), 1))
	f.Add(withSize(0, nil))
	f.Add(withSize(-1, header(3, 9)))
	f.Add(withSize(12, append(header(18, 77), 0, 0)))
	f.Add(append(frameOf(metadata(0), 1), frameOf(fetch(), 2)...))
	f.Add(withSize(1<<20, append(header(0, 9), 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x3f)))
	fix := startTCP(f, Options{})
	f.Cleanup(fix.stop)
	f.Fuzz(func(t *testing.T, input []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := &wire{t, fix.dial()}
		go func() {
			_, _ = w.Write(input) // the server may hang up before the end
			if tc, ok := w.Conn.(*net.TCPConn); ok {
				_ = tc.CloseWrite()
			}
		}()
		_, _ = io.Copy(io.Discard, w)
		w.close()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(64*len(input)+4<<20) {
			t.Errorf("%d bytes of input made the server allocate %d", len(input), n)
		}
		fix.t = t
		fix.roundTrip()
	})
}

// FX-7: of clients of another age, or of none of Kafka's, people are told once;
// a port scan does not fill the log.
func TestTheFirstUnspokenRequestOfAKindIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	f := startTCP(t, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	for range 3 {
		for _, frame := range [][]byte{withSize(10, header(0, 99)), withSize(10, header(11, 0)), []byte("GET / HTTP/1.1\r\n"), withSize(4, make([]byte, 4))} {
			w := f.connect()
			w.send(frame)
			w.wantClosed()
			w.close()
		}
	}
	f.stop()
	if got := strings.Count(log.String(), "level=WARN"); got != 3 {
		t.Errorf("%d warnings:\n%s", got, &log)
	}
	for _, want := range []string{"Produce v99 is not spoken", "API key 11 (JoinGroup)", "GET "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no warning of %s:\n%s", want, &log)
		}
	}
}
