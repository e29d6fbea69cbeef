package handler

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// DescribeGroups shows clients as Java prints their addresses.
func TestClientHostIsPrintedAsJavaDoes(t *testing.T) {
	for remote, want := range map[string]string{
		"127.0.0.1:5000":           "/127.0.0.1",
		"[::ffff:10.1.2.3]:5000":   "/10.1.2.3",
		"[::1]:5000":               "/0:0:0:0:0:0:0:1",
		"[2001:db8::a0:b]:5000":    "/2001:db8:0:0:0:0:a0:b",
		"[fe80::1%lo]:5000":        "/fe80:0:0:0:0:0:0:1%lo",
		"[1000:200:30:4::]:5000":   "/1000:200:30:4:0:0:0:0",
		"[ffff::ffff:0:1:10]:5000": "/ffff:0:0:0:ffff:0:1:10",
	} {
		conn := &server.ConnInfo{Remote: tcp(remote)}
		if got := clientHost(conn); got != want {
			t.Errorf("%s is shown as %s, want %s", remote, got, want)
		}
	}
	if got := clientHost(&server.ConnInfo{}); got != "" {
		t.Errorf("a connection without an address is shown as %q", got)
	}
}

// The end of the connection, or of the broker, ends the wait for other members.
func TestAParkedReplyIsCompletedByItsAnswerOrByTheEndOfItsConnection(t *testing.T) {
	for _, ended := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan int16, 1)
		reply := parked(answer, 16, func(code int16) kmsg.Response {
			resp := kmsg.NewPtrHeartbeatResponse()
			resp.ErrorCode = code
			return resp
		})
		want := int16(16)
		if ended {
			cancel()
		} else {
			answer <- 27
			want = 27
		}
		reply.Wait(ctx)
		resp, err := reply.Response()
		check(t, err)
		if got := resp.Body.(*kmsg.HeartbeatResponse).ErrorCode; got != want {
			t.Errorf("ended %v: answered with %d, want %d", ended, got, want)
		}
		cancel()
	}
}
