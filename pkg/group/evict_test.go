package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// GR-9: a member whose last connection closed is gone after 500 ms.
func TestMembersWithoutAConnectionAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.GroupEvictOnDisconnect = true
		m := k.member("g")
		m.conn = 1
		k.want(m.join(), nil)
		if _, err := m.sync(); err != nil {
			t.Fatal(err)
		}
		// It has another connection.
		m.conn = 2
		k.want(m.heartbeat(), nil)
		k.Disconnected(1)
		pass(time.Second)
		m.conn = 0
		k.want(m.heartbeat(), nil)
		// It connects anew in time.
		k.Disconnected(2)
		pass(499 * time.Millisecond)
		m.conn = 3
		k.want(m.heartbeat(), nil)
		pass(time.Second)
		m.conn = 0
		k.want(m.heartbeat(), nil)
		// It does not.
		k.Disconnected(3)
		pass(499 * time.Millisecond)
		if k.state("g") != "Stable" {
			t.Error(k.state("g"))
		}
		pass(2 * time.Millisecond)
		if k.state("g") != "Empty" {
			t.Error(k.state("g"))
		}
		k.want(m.heartbeat(), kerr.UnknownMemberID)
		if len(k.byConn) > 0 || len(k.groups["g"].conns) > 0 {
			t.Errorf("%d connections are remembered", len(k.byConn))
		}
	})
}

// GR-9: also one that waits for its first generation, and one that has yet to use its id.
func TestJoiningMembersAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.GroupEvictOnDisconnect = true
		a := k.alone("g")
		waiting := k.member("g")
		waiting.conn = 1
		answer := waiting.start()
		yet := k.member("g")
		yet.conn = 2
		if r := <-yet.request(); r.MemberID == "" {
			t.Errorf("%+v", r)
		}
		k.Disconnected(1)
		k.Disconnected(2)
		pass(501 * time.Millisecond)
		k.want((<-answer).Err, kerr.UnknownMemberID)
		k.want(a.join(), nil) // nobody is waited for
		if len(a.last.Members) != 1 {
			t.Errorf("%+v", a.last)
		}
	})
}

// GR-9: it is off.
func TestByDefaultSessionsAloneCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		m := k.member("g")
		m.conn = 1
		k.want(m.join(), nil)
		_, err := m.sync()
		k.want(err, nil)
		k.Disconnected(1)
		pass(9 * time.Second)
		k.want(m.heartbeat(), nil)
		if len(k.byConn) > 0 {
			t.Error("connections are remembered")
		}
	})
}
