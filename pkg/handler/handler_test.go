package handler

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A wire is a client's end of a connection to a real server with the kit's Handler.
type wire struct {
	t    *testing.T
	conn net.Conn
	next int32
}

func (k *kit) serve(t *testing.T) *wire {
	t.Helper()
	s := server.New(server.Options{Handler: k.Handler, Logger: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(t.Context(), ln, "PLAINTEXT") // ends as the listener is closed
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	check(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = ln.Close()
		_ = s.Shutdown(t.Context())
		<-served
	})
	return &wire{t: t, conn: conn}
}

// send writes one request.
func (w *wire) send(version int16, req kmsg.Request) {
	w.t.Helper()
	req.SetVersion(version)
	w.next++
	b := kmsg.NewRequestFormatter(kmsg.FormatterClientID("wire")).AppendRequest(nil, req, w.next)
	_, err := w.conn.Write(b)
	check(w.t, err)
}

// frame reads one response frame without its size.
func (w *wire) frame() []byte {
	w.t.Helper()
	var size [4]byte
	_, err := io.ReadFull(w.conn, size[:])
	check(w.t, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(w.conn, b)
	check(w.t, err)
	return b
}

// receive reads the answer to a request, whose response header has tags or not.
func (w *wire) receive(correlation int32, version int16, resp kmsg.Response, tags bool) {
	w.t.Helper()
	b := w.frame()
	if got := int32(binary.BigEndian.Uint32(b)); got != correlation {
		w.t.Fatalf("correlation id %d, want %d", got, correlation)
	}
	b = b[4:]
	if tags {
		b = b[1:]
	}
	resp.SetVersion(version)
	check(w.t, resp.ReadFrom(b))
}

// A whole conversation over a socket, records by sendfile included.
func TestOverASocket(t *testing.T) {
	k := newKitOn(t, vfs.OS, nil)
	w := k.serve(t)

	w.send(3, apiVersionsRequest())
	versions := kmsg.NewPtrApiVersionsResponse()
	w.receive(1, 3, versions, false) // its header never has tags
	wantCode(t, versions.ErrorCode, nil)

	w.send(12, metadataFor("a"))
	meta := kmsg.NewPtrMetadataResponse()
	w.receive(2, 12, meta, true)
	wantCode(t, meta.Topics[0].ErrorCode, nil)
	id := meta.Topics[0].TopicID

	sent := batch(t, record.Options{Codec: record.Zstd}, "x", "y", "z")
	for range 3 { // pipelined
		w.send(13, produceTo("", id, -1, append([]byte(nil), sent...)))
	}
	w.send(18, fetchRequest(want{id: id}))
	for i := range int32(3) {
		produced := kmsg.NewPtrProduceResponse()
		w.receive(3+i, 13, produced, true)
		p := produced.Topics[0].Partitions[0]
		wantCode(t, p.ErrorCode, nil)
		if p.BaseOffset != int64(3*i) {
			t.Fatalf("base offset %d, want %d", p.BaseOffset, 3*i)
		}
	}
	fetched := kmsg.NewPtrFetchResponse()
	w.receive(6, 18, fetched, true)
	got := fetched.Topics[0].Partitions[0]
	if len(got.RecordBatches) != 3*len(sent) {
		t.Fatalf("%d bytes, want %d", len(got.RecordBatches), 3*len(sent))
	}
	for rest := got.RecordBatches; len(rest) > 0; {
		b, more, err := record.Parse(rest)
		check(t, err)
		if !bytes.Equal(b[record.HeaderSize:], sent[record.HeaderSize:]) {
			t.Fatal("other records than were sent")
		}
		rest = more
	}
}

// FX-10: every API that names the broker gives the address that this client connected to.
func TestTheAddressIsTheConnections(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	for _, local := range []string{"10.1.2.3:9092", "[::1]:19092"} {
		k.conn.Local = tcp(local)
		got := make(map[string]bool)
		add := func(host string, port int32) { got[net.JoinHostPort(host, strconv.Itoa(int(port)))] = true }
		meta := ask[*kmsg.MetadataResponse](k, 12, metadataFor("a"))
		add(meta.Brokers[0].Host, meta.Brokers[0].Port)
		cluster := ask[*kmsg.DescribeClusterResponse](k, 1, kmsg.NewPtrDescribeClusterRequest())
		add(cluster.Brokers[0].Host, cluster.Brokers[0].Port)
		for _, version := range []int16{0, 4} {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorKeys = []string{"g"}
			c := ask[*kmsg.FindCoordinatorResponse](k, version, req)
			if version >= 4 {
				c.Host, c.Port = c.Coordinators[0].Host, c.Coordinators[0].Port
			}
			add(c.Host, c.Port)
		}
		fenced := fetchRequest(all(made, 0))
		fenced.Topics[0].Partitions[0].CurrentLeaderEpoch = testEpoch - 1
		fetched := ask[*kmsg.FetchResponse](k, 16, fenced)
		add(fetched.Brokers[0].Host, fetched.Brokers[0].Port)
		if len(got) != 1 || !got[local] {
			t.Errorf("told %v, want %s", got, local)
		}
	}
}

func TestOverASocketUnknownVersions(t *testing.T) {
	k := newKit(t)
	w := k.serve(t)
	w.send(5, apiVersionsRequest())
	w.receive(1, 5, kmsg.NewPtrApiVersionsResponse(), false)

	// A later version of ApiVersions is answered in v0.
	newest := apiVersionsRequest()
	newest.SetVersion(5)
	later := kmsg.NewRequestFormatter().AppendRequest(nil, newest, 2)
	binary.BigEndian.PutUint16(later[6:], 99)
	_, err := w.conn.Write(later)
	check(t, err)
	resp := kmsg.NewPtrApiVersionsResponse()
	w.receive(2, 0, resp, false)
	wantCode(t, resp.ErrorCode, kerr.UnsupportedVersion)

	// Any other API's closes the connection.
	w.send(2, produceTo("a", [16]byte{}, 1, batch(t, record.Options{}, "x")))
	if n, err := w.conn.Read(make([]byte, 1)); err == nil {
		t.Fatalf("%d bytes instead of the end", n)
	}
}

// FuzzHandle: no body that decodes makes an API panic or give an answer that does not encode.
func FuzzHandle(f *testing.F) {
	seed := func(version int16, req kmsg.Request) {
		req.SetVersion(version)
		f.Add(uint8(req.Key()), uint8(version), req.AppendTo(nil))
	}
	seed(9, produceTo("a", [16]byte{}, -1, batch(f, record.Options{}, "x")))
	seed(12, fetchRequest(want{topic: "a"}))
	seed(7, listRequest("a", 0, -3))
	seed(12, metadataFor("a", "b"))
	seed(7, createRequest("c", "c", "d"))
	seed(6, deleteRequest(6, "c"))
	seed(4, describeRequest(kmsg.ConfigResourceTypeTopic, "a", "retention.ms"))
	seed(5, apiVersionsRequest())
	seed(6, kmsg.NewPtrFindCoordinatorRequest())
	seed(5, kmsg.NewPtrInitProducerIDRequest())
	seed(4, kmsg.NewPtrOffsetForLeaderEpochRequest())
	seed(2, kmsg.NewPtrDescribeClusterRequest())
	k := newKit(f)
	k.create("a", 2)
	k.append("a", 0, "x")
	f.Fuzz(func(t *testing.T, key, version uint8, body []byte) {
		spec, ok := k.Lookup(int16(key))
		if !ok || int16(version) < spec.Min || int16(version) > spec.Max {
			return
		}
		req := kmsg.RequestForKey(int16(key))
		req.SetVersion(int16(version))
		if req.ReadFrom(body) != nil {
			return
		}
		if create, ok := req.(*kmsg.CreateTopicsRequest); ok { // validated only, lest the disk in memory fills
			create.ValidateOnly = true
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a long poll does not wait
		reply := k.Handle(ctx, &server.Request{Conn: k.conn, Key: int16(key), Version: int16(version), Body: req})
		if reply.Wait != nil {
			reply.Wait(ctx)
		}
		if reply.Response == nil {
			return
		}
		resp, err := reply.Response()
		check(t, err)
		wire := join(t, resp.Parts)
		if resp.Body != nil {
			wire = resp.Body.AppendTo(nil)
		}
		out := req.ResponseKind()
		out.SetVersion(int16(version))
		check(t, out.ReadFrom(wire))
		if resp.Release != nil {
			resp.Release()
		}
	})
}
