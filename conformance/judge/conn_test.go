package judge

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeBroker answers each request by what answer returns for its key and correlation id: a frame without its size, nil for no answer; false closes.
func fakeBroker(t *testing.T, answer func(key int16, correlation uint32) ([]byte, bool)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // a listener of a test
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go serveFake(nc, answer)
		}
	}()
	return l.Addr().String()
}

func serveFake(nc net.Conn, answer func(int16, uint32) ([]byte, bool)) {
	defer nc.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(nc, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(nc, frame); err != nil {
			return
		}
		key, correlation := int16(binary.BigEndian.Uint16(frame)), binary.BigEndian.Uint32(frame[4:])
		out, ok := answer(key, correlation)
		if !ok {
			return
		}
		if out != nil {
			out = append(binary.BigEndian.AppendUint32(nil, uint32(len(out))), out...)
			if _, err := nc.Write(out); err != nil {
				return
			}
		}
	}
}

func respond(correlation uint32, resp kmsg.Response) []byte {
	out := binary.BigEndian.AppendUint32(nil, correlation)
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		out = append(out, 0)
	}
	return resp.AppendTo(out)
}

func fakeMetadata(correlation uint32) []byte {
	metadata := kmsg.NewPtrMetadataResponse()
	metadata.Version = 9
	return respond(correlation, metadata)
}

func TestAnswerNoAnswerAndCloseAreToldApart(t *testing.T) {
	hangUp := false
	addr := fakeBroker(t, func(key int16, correlation uint32) ([]byte, bool) {
		switch key {
		case kmsg.Metadata.Int16():
			return fakeMetadata(correlation), true
		case kmsg.Produce.Int16():
			return nil, !hangUp
		}
		return respond(correlation, kmsg.NewPtrApiVersionsResponse()), true
	})
	e := NewEnv(t, "s", addr, false)
	defer e.Close()
	c := e.Conn()
	acks0 := kmsg.NewPtrProduceRequest()
	acks0.Acks = 0
	if resp := c.Do("no answer", 3, acks0); resp != nil {
		t.Errorf("a response %v", resp)
	}
	hangUp = true
	c.Do("closed", 3, acks0)
	acks1 := kmsg.NewPtrProduceRequest()
	acks1.Acks = 1
	c.Do("closed instead of answered", 3, acks1)
	if resp := c.Do("answered", 0, kmsg.NewPtrApiVersionsRequest(), Bytes()); resp == nil {
		t.Error("no response")
	}
	want := []Exchange{{Outcome: outcomeNone}, {Outcome: outcomeClosed}, {Outcome: outcomeClosed}, {Bytes: "000000000000"}}
	for i, x := range e.Exchanges() {
		if x.Outcome != want[i].Outcome || x.Bytes != want[i].Bytes || (x.Response != nil) != (i == 3) {
			t.Errorf("%s: %+v", x.Step, x)
		}
	}
}

func TestPipelineReadsOneResponseForEach(t *testing.T) {
	addr := fakeBroker(t, func(key int16, correlation uint32) ([]byte, bool) {
		if key == kmsg.Metadata.Int16() {
			return fakeMetadata(correlation), true
		}
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = int16(correlation)
		return respond(correlation, resp), true
	})
	e := NewEnv(t, "s", addr, false)
	defer e.Close()
	got := e.Conn().Pipeline("all", 0, kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrApiVersionsRequest())
	for i, resp := range got {
		if resp.(*kmsg.ApiVersionsResponse).ErrorCode != int16(i+1) {
			t.Errorf("%d: %+v", i, resp)
		}
	}
	if len(e.Exchanges()) != 3 || e.Exchanges()[2].Step != "all: 3" {
		t.Errorf("%+v", e.Exchanges())
	}
}

func TestFrameIsWhatKmsgMakes(t *testing.T) {
	req := kmsg.NewPtrMetadataRequest()
	for _, version := range []int16{1, 9} {
		req.SetVersion(version)
		want := kmsg.NewRequestFormatter(kmsg.FormatterClientID("judg")).AppendRequest(nil, req, 5)
		if got := Frame(3, version, 5, version >= 9, req.AppendTo(nil)); string(got) != string(want) {
			t.Errorf("v%d: %x, want %x", version, got, want)
		}
	}
}

func TestAHangingRequestHasNoResponseAndAnAnsweredOneItsOwn(t *testing.T) {
	addr := fakeBroker(t, func(key int16, correlation uint32) ([]byte, bool) {
		switch key {
		case kmsg.Metadata.Int16():
			return fakeMetadata(correlation), true
		case kmsg.Produce.Int16():
			return nil, true
		}
		return respond(correlation, kmsg.NewPtrApiVersionsResponse()), true
	})
	e := NewEnv(t, "s", addr, false)
	defer e.Close()
	c := e.Conn()
	req := kmsg.NewPtrProduceRequest()
	req.Acks = 1
	if resp := c.Do("hangs", 3, req, MayHang()); resp != nil {
		t.Errorf("a response %v", resp)
	}
	if resp := c.Do("answers", 0, kmsg.NewPtrApiVersionsRequest(), MayHang()); resp == nil {
		t.Error("no response")
	}
	if got := e.Exchanges()[0].Outcome; got != outcomeNone {
		t.Errorf("outcome %q", got)
	}
}
