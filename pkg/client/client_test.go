package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker is a scripted one: it answers each request by its function.
func dialTo(broker func(t *testing.T, nc net.Conn), t *testing.T) Options {
	return Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			broker(t, theirs)
		}()
		return ours, nil
	}}
}

// readRequest returns the header's key, version and correlation id.
func readRequest(nc net.Conn) (key, version int16, correlation uint32, err error) {
	var size [4]byte
	if _, err = io.ReadFull(nc, size[:]); err != nil {
		return
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err = io.ReadFull(nc, b); err != nil {
		return
	}
	return int16(binary.BigEndian.Uint16(b)), int16(binary.BigEndian.Uint16(b[2:])), binary.BigEndian.Uint32(b[4:]), nil
}

func writeResponse(nc net.Conn, correlation uint32, tags []byte, resp kmsg.Response) {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), correlation)
	b = resp.AppendTo(append(b, tags...))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, _ = nc.Write(b) // the client may be gone; it tells what it got
}

// speak answers ApiVersions, and Metadata in versions up to 12.
func speak(t *testing.T, nc net.Conn) {
	for {
		key, version, correlation, err := readRequest(nc)
		if err != nil {
			return
		}
		switch kmsg.Key(key) {
		case kmsg.ApiVersions:
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.SetVersion(version)
			resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{
				{ApiKey: int16(kmsg.Metadata), MinVersion: 1, MaxVersion: 12},
				{ApiKey: int16(kmsg.ApiVersions), MinVersion: 0, MaxVersion: 3},
				{ApiKey: int16(kmsg.Produce), MinVersion: 900, MaxVersion: 901},
			}
			writeResponse(nc, correlation, nil, resp)
		case kmsg.Metadata:
			resp := kmsg.NewPtrMetadataResponse()
			resp.SetVersion(version)
			broker := kmsg.NewMetadataResponseBroker()
			broker.Host, broker.Port = "localhost", 9092
			resp.Brokers = append(resp.Brokers, broker)
			writeResponse(nc, correlation, []byte{1, 7, 2, 'h', 'i'}, resp)
		}
	}
}

func TestDoTakesTheHighestCommonVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(t.Context(), "broker:9092", dialTo(speak, t))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			resp, err := c.Do(t.Context(), kmsg.NewPtrMetadataRequest())
			if err != nil {
				t.Fatal(err)
			}
			if m := resp.(*kmsg.MetadataResponse); m.Version != 12 || m.Brokers[0].Host != "localhost" {
				t.Errorf("got %+v", m)
			}
		}
		if _, err := c.Do(t.Context(), kmsg.NewPtrApiVersionsRequest()); err != nil { // v3: flexible, but for its header
			t.Errorf("ApiVersions: %v", err)
		}
		if _, err := c.Do(t.Context(), kmsg.NewPtrFetchRequest()); err == nil || !strings.Contains(err.Error(), "does not speak Fetch") {
			t.Errorf("Fetch: %v", err)
		}
		if _, err := c.Do(t.Context(), kmsg.NewPtrProduceRequest()); err == nil || !strings.Contains(err.Error(), "v900 to v901") {
			t.Errorf("Produce: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever the other side is, the error says what happened, and where.
func TestErrorsSayWhatTheOtherSideDid(t *testing.T) {
	for want, broker := range map[string]func(t *testing.T, nc net.Conn){
		"closed the connection without an answer": func(_ *testing.T, nc net.Conn) { _, _, _, _ = readRequest(nc) },
		"not a Kafka listener": func(_ *testing.T, nc net.Conn) {
			_, _, _, _ = readRequest(nc)
			_, _ = nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
		},
		"unexpected EOF": func(_ *testing.T, nc net.Conn) {
			_, _, _, _ = readRequest(nc)
			_, _ = nc.Write([]byte{0, 0, 0, 100, 0})
		},
		"answer to request 77": func(t *testing.T, nc net.Conn) {
			_, _, _, _ = readRequest(nc)
			writeResponse(nc, 77, nil, kmsg.NewPtrApiVersionsResponse())
		},
		"UNSUPPORTED_VERSION": func(t *testing.T, nc net.Conn) {
			_, _, correlation, _ := readRequest(nc)
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.ErrorCode = 35
			writeResponse(nc, correlation, nil, resp)
		},
		"enough data": func(_ *testing.T, nc net.Conn) {
			_, _, correlation, _ := readRequest(nc)
			_, _ = nc.Write(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 4}, correlation))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Dial(t.Context(), "broker:9092", dialTo(broker, t))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "broker:9092") {
				t.Errorf("want %q, got %v", want, err)
			}
		})
	}
}

func TestTheContextEndsAWaitAndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		broker := func(t *testing.T, nc net.Conn) {
			_, version, correlation, _ := readRequest(nc)
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.SetVersion(version)
			resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: int16(kmsg.Metadata), MaxVersion: 12}}
			writeResponse(nc, correlation, nil, resp)
			for {
				if _, _, _, err := readRequest(nc); err != nil {
					return
				}
				asked.Add(1)
			}
		}
		c, err := Dial(t.Context(), "broker:9092", dialTo(broker, t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, kmsg.NewPtrMetadataRequest()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Do(t.Context(), kmsg.NewPtrMetadataRequest()); err == nil || asked.Load() != 1 {
			t.Errorf("a broken connection was used again: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// After an answer that does not belong, nothing that follows can be believed.
func TestAConnectionThatLostItsPlaceIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(t.Context(), "broker:9092", dialTo(speak, t))
		if err != nil {
			t.Fatal(err)
		}
		c.correlation += 5
		c.r.Reset(io.MultiReader(strings.NewReader("\x00\x00\x00\x04\x00\x00\x00\x01"), c.nc))
		if _, err := c.Do(t.Context(), kmsg.NewPtrMetadataRequest()); err == nil || !strings.Contains(err.Error(), "answer to request 1") {
			t.Errorf("got %v", err)
		}
		if _, err := c.Do(t.Context(), kmsg.NewPtrMetadataRequest()); err == nil || !strings.Contains(err.Error(), "connection is broken") {
			t.Errorf("got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAFailedDialNamesTheAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), addr, Options{}); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v", err)
	}
}

// What any server answers does not crash the client.
func FuzzResponse(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Add([]byte{0, 0, 0, 14, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 12, 0, 0, 0, 5, 0, 0, 0, 2, 9})
	f.Fuzz(func(t *testing.T, answer []byte) {
		opts := dialTo(func(_ *testing.T, nc net.Conn) {
			_, _, _, _ = readRequest(nc)
			_, _ = nc.Write(answer)
		}, t)
		_ = Check(t.Context(), "broker:9092", opts) // any error is fine
	})
}
