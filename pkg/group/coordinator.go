package group

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/group/classic"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Coordinator is all groups of the broker. Its methods may be called by any
// goroutine. Those without a context wait for a lock in memory at most, and
// where a membership has changed, for a write to the page cache.
// Errors are, or wrap, kerr values. After Close all of them answer
// COORDINATOR_NOT_AVAILABLE, as Kafka does once its coordinator is not active; List tells of none.
type Coordinator struct {
	o      Options
	cfg    classic.Config
	closed atomic.Bool
	// behind says that membership could not be written when that was last tried.
	behind  atomic.Bool
	writes  sync.WaitGroup // submitted to the store and not complete
	journal *journal
	clients

	mu     sync.Mutex // guards what follows; order: group, coordinator
	groups map[string]*group
	sweep  clock.Timer // calls ExpireOffsets
}

// Open loads the groups from the store; their members' sessions start anew
// (GR-6). Offsets of topics that are gone are dropped (GR-7).
func Open(o Options) (*Coordinator, error) {
	c := &Coordinator{o: o, groups: map[string]*group{}, journal: newJournal(o.FS, o.Dir, o.Epoch, o.Logger)}
	c.cfg = classic.Config{
		InitialDelay: time.Duration(o.Settings.GroupInitialRebalanceDelayMs) * time.Millisecond,
		MaxSize:      o.Settings.GroupMaxSize,
		NewMemberID:  newMemberID,
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("load the groups: %w", err)
	}
	c.sweepLater()
	return c, nil
}

// Close stops all timers, and answers what is parked with NOT_COORDINATOR. It
// waits for what is being written behind; an error says that the last state of
// some group did not reach the disk. The store is closed after it.
func (c *Coordinator) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	if c.sweep != nil {
		c.sweep.Stop()
	}
	c.mu.Unlock()
	groups := c.all()
	for _, g := range groups {
		g.mu.Lock()
		e := g.state.Abort(kerr.NotCoordinator)
		g.applyLocked(e)
		g.writeLocked() // once more, if it failed before
		g.unlock(e)
	}
	c.writes.Wait()
	lost := 0
	for _, g := range groups {
		g.mu.Lock()
		if g.dirty && !g.gone {
			lost++
		}
		g.mu.Unlock()
	}
	c.journal.close(lost > 0)
	if lost > 0 {
		return fmt.Errorf("the last state of %d groups could not be written", lost)
	}
	return nil
}

// Join starts a JoinGroup. The answer comes, now or once the group is complete,
// as one value in the channel, which has room for it: a caller whose client is
// gone may leave it there. A caller that gives up (the broker stops) answers
// NOT_COORDINATOR by itself. Of two JoinGroups of one member, the first is
// never answered if the second comes while it waits: its client has given it up.
func (c *Coordinator) Join(req *JoinRequest) <-chan JoinResponse {
	answer := make(chan JoinResponse, 1)
	if err := c.checkJoin(req); err != nil {
		answer <- classic.FailedJoin(req.MemberID, err)
		return answer
	}
	g := c.lock(req.Group, req.MemberID == "")
	if g == nil {
		answer <- classic.FailedJoin(req.MemberID, c.missing(kerr.UnknownMemberID))
		return answer
	}
	c.o.Logger.Debug("JoinGroup", "group", req.Group, "member", req.MemberID, "reason", req.Reason)
	e := g.state.Join(c.o.Clock.Now(), kept(req), answer)
	g.heardLocked(e.Joining, req.Conn)
	g.applyLocked(e)
	g.unlock(e)
	return answer
}

func (c *Coordinator) checkJoin(req *JoinRequest) error {
	if err := c.check(req.Group); err != nil {
		return err
	}
	low, high := c.o.Settings.GroupMinSessionTimeoutMs, c.o.Settings.GroupMaxSessionTimeoutMs
	if ms := req.SessionTimeout.Milliseconds(); ms < int64(low) || ms > int64(high) {
		return kerr.InvalidSessionTimeout
	}
	return nil
}

// check is for the requests that need a group's name.
func (c *Coordinator) check(name string) error {
	if c.closed.Load() {
		return kerr.CoordinatorNotAvailable
	}
	if name == "" {
		return kerr.InvalidGroupID
	}
	return checkLength(name)
}

// checkLength refuses what can't be a key: Kafka has no such limit.
func checkLength(name string) error {
	if len(name) > metastore.MaxGroupName {
		return kerr.InvalidGroupID
	}
	return nil
}

// missing is the error for a group that lock did not find.
func (c *Coordinator) missing(err error) error {
	if c.closed.Load() {
		return kerr.CoordinatorNotAvailable
	}
	return err
}

// Sync starts a SyncGroup; the answer comes as that of Join does.
func (c *Coordinator) Sync(req *SyncRequest) <-chan SyncResponse {
	answer := make(chan SyncResponse, 1)
	if req.Named && (req.ProtocolType == nil || req.ProtocolName == nil) {
		answer <- SyncResponse{Err: kerr.InconsistentGroupProtocol}
		return answer
	}
	if err := c.check(req.Group); err != nil {
		answer <- SyncResponse{Err: err}
		return answer
	}
	g := c.lock(req.Group, false)
	if g == nil {
		answer <- SyncResponse{Err: c.missing(kerr.UnknownMemberID)}
		return answer
	}
	e := g.state.Sync(c.o.Clock.Now(), keptSync(req), answer)
	g.heardLocked(req.MemberID, req.Conn)
	g.applyLocked(e)
	g.unlock(e)
	return answer
}

// Heartbeat keeps a member's session; nil, or what the client is told:
// REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
// INVALID_GROUP_ID.
func (c *Coordinator) Heartbeat(req *HeartbeatRequest) error {
	if err := c.check(req.Group); err != nil {
		return err
	}
	g := c.lock(req.Group, false)
	if g == nil {
		return c.missing(kerr.UnknownMemberID)
	}
	defer g.release()
	defer g.armLocked()
	g.heardLocked(req.MemberID, req.Conn)
	return g.state.Heartbeat(c.o.Clock.Now(), req.MemberID, req.InstanceID, req.Generation)
}

// Leave removes members from a group.
func (c *Coordinator) Leave(req *LeaveRequest) LeaveResponse {
	if err := c.check(req.Group); err != nil {
		return LeaveResponse{Err: err}
	}
	g := c.lock(req.Group, false)
	if g == nil {
		if c.closed.Load() {
			return LeaveResponse{Err: kerr.CoordinatorNotAvailable}
		}
		errs := make([]error, len(req.Members))
		for i := range errs {
			errs[i] = kerr.UnknownMemberID
		}
		return LeaveResponse{Members: errs}
	}
	leavers := make([]classic.Leaver, len(req.Members))
	for i, m := range req.Members {
		leavers[i] = classic.Leaver{MemberID: m.MemberID, InstanceID: m.InstanceID}
		c.o.Logger.Debug("LeaveGroup", "group", req.Group, "member", m.MemberID, "reason", m.Reason)
	}
	errs, e := g.state.Leave(c.o.Clock.Now(), leavers)
	g.applyLocked(e)
	g.unlock(e)
	return LeaveResponse{Members: errs}
}
