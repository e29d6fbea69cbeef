package judge

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pending is a request that was sent and is not answered yet: one that the broker holds until other clients have done something.
type Pending struct {
	conn        *Conn
	step        string
	req         kmsg.Request
	correlation int32
	peeks       int
}

// outcomeParked is that of a request which is not answered for the time being.
const outcomeParked = "parked"

// parkedFor is how long a request has no answer to be called parked. It is also what orders requests of several connections: the broker has
// taken up one that is parked before the next is sent.
const parkedFor = 100 * time.Millisecond

// Send sends a request at a version. What comes of it is recorded by Done, so that the order of the exchanges is the same in every run.
func (c *Conn) Send(step string, version int16, req kmsg.Request) *Pending {
	c.env.t.Helper()
	c.step = step
	req.SetVersion(version)
	c.correlation++
	c.write(c.formatter.AppendRequest(nil, req, c.correlation))
	return &Pending{conn: c, step: step, req: req, correlation: c.correlation}
}

// Park sends a request and records that it is not answered for the time being, or that it is.
func (c *Conn) Park(step string, version int16, req kmsg.Request) *Pending {
	c.env.t.Helper()
	p := c.Send(step, version, req)
	p.Parked()
	return p
}

// Parked records whether the request is still without an answer.
func (p *Pending) Parked() {
	p.conn.env.t.Helper()
	p.peeks++
	x := Exchange{Step: fmt.Sprintf("%s: parked? %d", p.step, p.peeks), API: kmsg.NameForKey(p.req.Key()), Version: p.req.GetVersion(),
		Request: summary(p.conn.env.masks.render(p.req)), Outcome: "answered"}
	if len(p.conn.read) == 0 && p.conn.silent(parkedFor) {
		x.Outcome = outcomeParked
	}
	p.conn.record(x)
}

// Done waits for what comes of the request and records it, as Do does.
func (p *Pending) Done(opts ...Option) kmsg.Response {
	p.conn.env.t.Helper()
	p.conn.step = p.step
	return p.conn.outcome(p.step, p.req, false, p.correlation, opts)
}
