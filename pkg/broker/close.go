package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// Stop ends the broker as SIGTERM does (ST-50): no new connections, long polls
// answer, replies drain (5 s at most), every open log is flushed and closed,
// meta.db is closed, and the clean-shutdown mark is written. An error means
// that the stop was not clean: nothing acknowledged is lost, and the next start
// checks what it reads. Further calls return the first one's result.
func (b *Broker) Stop() error {
	b.stopOnce.Do(func() { b.stopErr = b.stop() })
	return b.stopErr
}

func (b *Broker) stop() error {
	began := time.Now()
	b.phase.Store(stopping)
	b.watch.Stop()
	if b.http != nil {
		b.endHTTP() // a compaction that somebody waits for may take minutes, and nothing is lost by its end
	}
	ctx, cancel := context.WithTimeout(context.Background(), server.ShutdownTimeout)
	defer cancel()
	// A client that does not take its answer in time is cut off; that loses
	// nothing and leaves the stop clean.
	if err := b.server.Shutdown(ctx); err != nil {
		b.log.Warn("connections were cut off at the stop", "err", err)
	}
	if b.http != nil {
		if err := b.http.Shutdown(ctx); err != nil {
			b.log.Warn("an HTTP request was cut off at the stop", "err", err)
			_ = b.http.Close() // its connections are gone either way
		}
	}
	b.endRuns()
	b.serving.Wait()
	err := b.storage.close()
	if err != nil {
		b.log.Error("the stop was not clean: the next start checks what it reads", "err", err)
		return fmt.Errorf("stop: %w", err)
	}
	b.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
	return nil
}
