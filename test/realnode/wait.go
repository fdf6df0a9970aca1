package realnode

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// waitFor calls done until it returns true, ctx ends or the limit is over.
func waitFor(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("not ready after "+limit.String()))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// lockThread ties the calling goroutine to its thread for good.
func lockThread() { runtime.LockOSThread() }
