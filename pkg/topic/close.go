package topic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
)

var errStopping = fmt.Errorf("the broker is stopping: %w", kerr.KafkaStorageError)

// closers is how many logs are closed at once. They wait for fsyncs, which the
// disk serves better together, not for the processor.
const closers = 32

// Close flushes and closes every open log. After an error the stop was not
// clean. Logs can't be opened any more: KAFKA_STORAGE_ERROR, which clients retry.
func (r *Registry) Close() error {
	r.closed.Store(true) // before the look at the topics: a newer one opens no log

	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	logs := make(chan *commitlog.Log)
	for range closers {
		wg.Go(func() {
			for l := range logs {
				if err := l.Close(); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, t := range r.All() {
		for _, s := range t.slots {
			if l := s.end(r, errStopping); l != nil {
				logs <- l
			}
		}
	}
	close(logs)
	wg.Wait()
	return errors.Join(errs...)
}
