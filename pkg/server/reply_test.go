package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// With acks=0 nothing is answered, and the next request is.
func TestANilResponseAnswersNothing(t *testing.T) {
	for name, silent := range map[string]Reply{
		"no Response":  {},
		"nil Response": {Response: func() (*Response, error) { return nil, nil }},
		"after a wait": {Wait: func(context.Context) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
					if req.Key == 0 {
						return silent
					}
					return answer(req)
				}}})
				w := f.connect()
				w.send(frameOf(produce(0, "a", nil), 1), frameOf(produce(0, "a", nil), 2), frameOf(metadata(12), 3))
				w.wantCorrelation(3)
				w.close()
				f.stop()
			})
		})
	}
}

func TestCloseOfAReplyClosesAfterTheAnswer(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
				r := answer(req)
				r.Close = true
				if waits {
					r.Wait = func(context.Context) {}
				}
				return r
			}}})
			w := f.connect()
			w.send(frameOf(metadata(12), 1))
			w.wantCorrelation(1)
			w.wantClosed()
			f.stop()
		})
	}
}

// A panic of a handler, wherever it is, ends its connection and nothing else.
func TestAPanicClosesItsConnectionOnly(t *testing.T) {
	for name, reply := range map[string]func() Reply{
		"Handle":   func() Reply { panic("handle") },
		"Wait":     func() Reply { return Reply{Wait: func(context.Context) { panic("wait") }} },
		"Response": func() Reply { return Reply{Response: func() (*Response, error) { panic("response") }} },
	} {
		for _, request := range [][]byte{frameOf(produce(-1, "a", nil), 1), frameOf(fetch(), 1)} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
						if req.Key == 3 {
							return answer(req)
						}
						return reply()
					}}})
					w := f.connect()
					w.send(request)
					w.wantClosed()
					if n := f.s.stats.Panics.Load(); n != 1 {
						t.Errorf("%d panics were counted, want 1", n)
					}
					f.roundTrip()
					f.stop()
				})
			})
		}
	}
}

func TestAnErrorOfAResponseClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{Handler: fakeHandler{func(context.Context, *Request) Reply {
			return Reply{Response: func() (*Response, error) { return nil, errors.New("no answer") }}
		}}})
		w := f.connect()
		w.send(frameOf(metadata(12), 1))
		w.wantClosed()
		if n := f.s.stats.HandlerErrors.Load(); n != 1 {
			t.Errorf("%d errors were counted, want 1", n)
		}
		f.stop()
	})
}
