// Package clock is domain time: retention, sessions, transactions, producer
// expiry, LogAppendTime. Socket deadlines, long polls and the fsync timer are
// real time and do not use it. The system's clock is one implementation; the
// other may be moved by a test of a running broker.
package clock

import "time"

// A Clock tells the time and wakes its callers.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed on this clock.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a call that AfterFunc has scheduled.
type Timer interface {
	// Stop keeps the call from happening. It is false if the call has
	// started or was stopped before.
	Stop() bool
}
