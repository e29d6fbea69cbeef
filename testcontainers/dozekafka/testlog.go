package dozekafka

import (
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

// A testLog writes a broker's log into a test's until the test is over: after
// that, writing would be a panic.
type testLog struct {
	mu      sync.Mutex
	tb      testing.TB // nil: the test is over
	written int        // lines
	skip    int        // lines that come once more
}

var _ testcontainers.LogConsumer = (*testLog)(nil)

func newTestLog(tb testing.TB) *testLog {
	l := &testLog{tb: tb}
	tb.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tb = nil
	})
	return l
}

// rewind says that the lines written so far come once more: testcontainers
// reads a container's whole log again after each start.
func (l *testLog) rewind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skip, l.written = l.written, 0
}

// Accept implements testcontainers.LogConsumer.
func (l *testLog) Accept(log testcontainers.Log) { l.lines(string(log.Content)) }

// Write implements io.Writer, for a broker in the same process.
func (l *testLog) Write(p []byte) (int, error) {
	l.lines(string(p))
	return len(p), nil
}

func (l *testLog) lines(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(text) {
		l.written++
		if l.skip > 0 {
			l.skip--
			continue
		}
		if l.tb != nil {
			l.tb.Log("doze-kafka: " + strings.TrimRight(line, "\r\n"))
		}
	}
}
