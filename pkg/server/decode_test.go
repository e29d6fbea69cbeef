package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersions answers for itself when its version is not spoken: its body is
// not decoded, and its answer has a header without tags.
func TestApiVersionsOfAnyVersionReachesTheHandlerUndecoded(t *testing.T) {
	for version, tags := range map[int16][]byte{-1: nil, 6: {0}, 9: {1, 99, 1, 'x'}, 32767: {0}} {
		synctest.Test(t, func(t *testing.T) {
			f := startPipe(t, Options{})
			w := f.connect()
			w.send(withSize(14+int32(len(tags)), append(append(header(18, version), tags...), 0xde, 0xad, 0xbe, 0xef)))
			rest := w.wantCorrelation(1)
			if code := binary.BigEndian.Uint16(rest); code != 35 {
				t.Errorf("error code %d, want UNSUPPORTED_VERSION", code)
			}
			w.close()
			f.stop()
		})
	}
}

// Its header is read, which has tags above the newest version too (recorded: frames-headers).
func TestApiVersionsOfALaterVersionNeedsTagsInItsHeader(t *testing.T) {
	for _, tags := range [][]byte{nil, {1, 99}} {
		synctest.Test(t, func(t *testing.T) {
			f := startPipe(t, Options{})
			w := f.connect()
			w.send(withSize(10+int32(len(tags)), append(header(18, 6), tags...)))
			w.wantClosed()
			f.stop()
		})
	}
}

// The answer to ApiVersions has a header without tags in flexible versions too:
// its reader does not know yet what the broker speaks.
func TestTheAnswerToApiVersionsHasAHeaderWithoutTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{})
		w := f.connect()
		req := kmsg.NewPtrApiVersionsRequest()
		req.SetVersion(3)
		w.send(frameOf(req, 1))
		rest := w.wantCorrelation(1)
		want := emptyResponse(&Request{Key: 18, Version: 3, Body: req}).Body.AppendTo(nil)
		if !bytes.Equal(rest, want) {
			t.Errorf("got %x, want %x", rest, want)
		}
		w.close()
		f.stop()
	})
}

// The client id is a nullable string with a length of two bytes in flexible
// headers too, and tags of the header are skipped.
func TestHeadersOfBothVersionsAreDecoded(t *testing.T) {
	body := metadata(12).AppendTo(nil)
	id := func(s string) []byte {
		return append(binary.BigEndian.AppendUint16(header(3, 12)[:8], uint16(len(s))), s...)
	}
	old := metadata(0).AppendTo(nil)
	for name, test := range map[string]struct {
		frame    []byte
		clientID string
	}{
		"null client id":     {append(append(header(3, 12), 0), body...), ""},
		"empty client id":    {append(append(id(""), 0), body...), ""},
		"client id":          {append(append(id("me"), 0), body...), "me"},
		"two tags":           {append(append(id("me"), 2, 5, 1, 'x', 9, 0), body...), "me"},
		"header version one": {append(header(3, 0), old...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
					if req.ClientID != test.clientID {
						t.Errorf("client id %q, want %q", req.ClientID, test.clientID)
					}
					return answer(req)
				}}})
				w := f.connect()
				w.send(withSize(int32(len(test.frame)), test.frame))
				rest := w.wantCorrelation(1)
				resp := kmsg.NewPtrMetadataResponse()
				resp.SetVersion(int16(binary.BigEndian.Uint16(test.frame[2:])))
				if resp.IsFlexible() {
					rest = rest[1:]
				}
				if err := resp.ReadFrom(rest); err != nil {
					t.Errorf("response: %v", err)
				}
				w.close()
				f.stop()
			})
		})
	}
}

func TestClientIDsAreNotAllocatedAgain(t *testing.T) {
	c := &conn{}
	id := []byte("producer-1")
	c.internClientID(id)
	if n := testing.AllocsPerRun(100, func() { c.internClientID(id) }); n != 0 {
		t.Errorf("%v allocations for a client id that is known", n)
	}
}
