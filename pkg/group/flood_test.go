package group

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// GR-1: a client that asks for member ids and never uses them costs a group
// nothing: all are forgotten with the session that they were given for.
// Where each request looked at all of them this took minutes, with the group locked.
func TestAFloodOfMemberIDsIsForgotten(t *testing.T) {
	const n = 50_000
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("g")
		for range n {
			if r := <-k.member("g").request(); !errors.Is(r.Err, kerr.MemberIDRequired) {
				t.Fatal(r.Err)
			}
		}
		pass(9 * time.Second)
		k.want(a.heartbeat(), nil)
		pass(2 * time.Second)
		k.want(a.heartbeat(), nil)
		if d, _ := k.Describe("g"); d.State != "Stable" || len(d.Members) != 1 {
			t.Errorf("%s, %d members", d.State, len(d.Members))
		}
	})
}
