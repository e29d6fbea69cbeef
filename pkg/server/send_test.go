package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A diskFile is a vfs.File that may hide its descriptor. It is opened with
// package os, so that these tests need no more of vfs than its interface.
type diskFile struct {
	vfs.File
	f      *os.File
	hideFd bool
}

func (d diskFile) ReadAt(b []byte, off int64) (int, error) { return d.f.ReadAt(b, off) }
func (d diskFile) Name() string                            { return d.f.Name() }
func (d diskFile) Fd() (uintptr, bool)                     { return d.f.Fd(), !d.hideFd }

func testFile(t testing.TB, size int) (diskFile, []byte) {
	content := make([]byte, size)
	r := mathrand.New(mathrand.NewPCG(1, uint64(size)))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	name := filepath.Join(t.TempDir(), "segment.log")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return diskFile{f: f}, content
}

func respondWith(resp func() *Response) fakeHandler {
	return fakeHandler{func(_ context.Context, req *Request) Reply {
		if req.Key != 1 {
			return answer(req)
		}
		return Reply{Response: func() (*Response, error) { return resp(), nil }}
	}}
}

// transports are the ways to a client: with sendfile, and without.
func transports(t *testing.T) map[string]func(opts Options) *fixture {
	cert := testCertificate(t)
	return map[string]func(opts Options) *fixture{
		"tcp":  func(opts Options) *fixture { return startTCP(t, opts) },
		"pipe": func(opts Options) *fixture { return startPipe(t, opts) },
		"tls": func(opts Options) *fixture {
			ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
			if err != nil {
				t.Fatal(err)
			}
			return start(t, opts, ln, func() net.Conn {
				c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
		},
	}
}

func testCertificate(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// ST-20: regions of files of any size, among bytes of any size, arrive as they
// are, by sendfile and by copying alike.
func TestPartsOfEverySizeArriveOnEveryTransport(t *testing.T) {
	file, content := testFile(t, 6<<20)
	hidden := file
	hidden.hideFd = true
	var parts []Part
	var want []byte
	addRegion := func(f vfs.File, off, n int) {
		parts = append(parts, Part{File: f, Offset: int64(off), Length: n})
		want = append(want, content[off:off+n]...)
	}
	addBytes := func(n int) {
		parts = append(parts, Part{Bytes: content[:n]})
		want = append(want, content[:n]...)
	}
	for _, n := range []int{1, 100, copyLimit, copyLimit + 1, copyPiece, copyPiece + 1, 3 << 20, 0} {
		addBytes(min(n, 70<<10))
		addRegion(file, 7, n)
		addRegion(hidden, len(content)-n, n)
	}
	for range 20 { // many small ones
		addRegion(file, 1000, copyLimit)
	}
	addBytes(3)
	for name, start := range transports(t) {
		t.Run(name, func(t *testing.T) {
			var released atomic.Int32
			f := start(Options{Handler: respondWith(func() *Response {
				return &Response{Parts: parts, Release: func() { released.Add(1) }}
			})})
			w := f.connect()
			for i := range int32(3) {
				w.send(frameOf(fetch(), i))
				rest := w.wantCorrelation(i)
				if rest[0] != 0 {
					t.Error("the header's tags are missing")
				}
				if !bytes.Equal(rest[1:], want) {
					t.Fatalf("got %d bytes, want %d others", len(rest)-1, len(want))
				}
			}
			w.close()
			f.stop()
			if n := released.Load(); n != 3 {
				t.Errorf("%d responses were released, want 3", n)
			}
		})
	}
}

// A region that has become shorter than the frame promised can only end the
// connection.
func TestATruncatedRegionClosesTheConnection(t *testing.T) {
	for name, start := range transports(t) {
		for _, length := range []int{copyLimit, 1 << 20} {
			t.Run(name, func(t *testing.T) {
				file, _ := testFile(t, length-1)
				f := start(Options{Handler: respondWith(func() *Response {
					return &Response{Parts: []Part{{File: file, Length: length}}}
				})})
				w := f.connect()
				w.send(frameOf(fetch(), 1))
				if b, err := readResponse(w); err == nil {
					t.Errorf("a whole response of %d bytes", len(b))
				}
				w.close()
				f.roundTrip()
				f.stop()
				if n := f.s.stats.HandlerErrors.Load(); n != 1 {
					t.Errorf("%d errors were counted, want 1", n)
				}
			})
		}
	}
}

// A slow reader gets everything, and the kernel's short writes are continued.
func TestPartialWritesAreContinued(t *testing.T) {
	file, content := testFile(t, 8<<20)
	f := startTCP(t, Options{Handler: respondWith(func() *Response {
		region := Part{File: file, Length: len(content)} // four are more than socket buffers hold
		return &Response{Parts: []Part{{Bytes: []byte("head")}, region, region, region, region, {Bytes: []byte("tail")}}}
	})})
	defer f.stop()
	w := f.connect()
	defer w.close()
	w.send(frameOf(fetch(), 1))
	size := make([]byte, 4)
	if _, err := io.ReadFull(w, size); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 0, binary.BigEndian.Uint32(size))
	for piece := make([]byte, 30000); len(got) < cap(got); {
		n, err := w.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, piece[:n]...)
	}
	if want := "head" + strings.Repeat(string(content), 4) + "tail"; string(got[5:]) != want {
		t.Error("the response arrived changed")
	}
}

// The size of the read of a stuck consumer's region is not held in memory.
func TestAStuckConsumerEndsWithTheIdleSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, _ := testFile(t, 1<<20)
		f := startPipe(t, Options{ConnectionsMaxIdle: time.Minute, Handler: respondWith(func() *Response {
			return &Response{Parts: []Part{{File: file, Length: 1 << 20}}}
		})})
		w := f.connect()
		w.send(frameOf(fetch(), 1))
		time.Sleep(2 * time.Minute) // virtual
		if n := f.s.stats.ConnectionsIdle.Load(); n != 1 {
			t.Errorf("%d idle connections were closed, want 1", n)
		}
		w.close()
		f.stop()
	})
}

func BenchmarkFetchOfARegion(b *testing.B) {
	file, content := testFile(b, 1<<20)
	hidden := file
	hidden.hideFd = true
	for name, f := range map[string]diskFile{"sendfile": file, "copy": hidden} {
		for _, size := range []int{4 << 10, 16 << 10, 32 << 10, len(content)} {
			b.Run(name+"/"+sizeName(size), func(b *testing.B) {
				fix := startTCP(b, Options{Handler: respondWith(func() *Response {
					return &Response{Parts: []Part{{Bytes: content[:60]}, {File: f, Length: size}, {Bytes: content[:3]}}}
				})})
				defer fix.stop()
				w := fix.connect()
				defer w.close()
				frame, buf := frameOf(fetch(), 1), make([]byte, size+72)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.Write(frame); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(w, buf); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return "1MiB"
	}
	return map[int]string{4 << 10: "4KiB", 16 << 10: "16KiB", 32 << 10: "32KiB"}[n]
}

// ST-22: a client that does not read an answer of many small parts holds no
// more memory than one whose answer is a large region.
func TestManySmallPartsGatherInABoundedBuffer(t *testing.T) {
	client, nc := net.Pipe()
	defer client.Close()
	received := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, client) // until nc is closed
		received <- n
	}()
	parts := make([]Part, 100)
	for i := range parts {
		parts[i].Bytes = make([]byte, 10<<10)
	}
	c := &conn{s: New(Options{}), nc: nc}
	s := sender{c: c, buf: getBuffer(0)}
	if err := s.parts(parts); err != nil {
		t.Fatal(err)
	}
	if n := cap(s.buf.b); n > gatherLimit {
		t.Errorf("the buffer grew to %d bytes", n)
	}
	if err := nc.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-received; n != 100*10<<10 {
		t.Errorf("%d bytes arrived", n)
	}
}
