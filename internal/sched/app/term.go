package app

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is a lock of which a process that has held it gives up its leadership when it finds
// that it does not hold it any more. The elector alone would continue: a leader that is late
// with its renewal, behind which another process acquired the lease, registered itself and
// ended, acquires it again as if nothing had happened, and requests go on to the process
// that is gone. It would also release the lease of another process.
type term struct {
	resourcelock.Interface
	held atomic.Bool
	once sync.Once
	over chan struct{} // closed when another process has held the lease since
}

func newTerm(lock resourcelock.Interface) *term {
	return &term{Interface: lock, over: make(chan struct{})}
}

// Get implements resourcelock.Interface.
func (t *term) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := t.Interface.Get(ctx)
	if err == nil && t.held.Load() && r.HolderIdentity != t.Identity() {
		t.once.Do(func() { close(t.over) })
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (t *term) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.write(ctx, r, t.Interface.Create)
}

// Update implements resourcelock.Interface.
func (t *term) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.write(ctx, r, t.Interface.Update)
}

func (t *term) write(
	ctx context.Context, r resourcelock.LeaderElectionRecord,
	do func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	select {
	case <-t.over:
		return ErrLeaseLost
	default:
	}
	err := do(ctx, r)
	if err == nil && r.HolderIdentity == t.Identity() {
		t.held.Store(true)
	}
	return err
}
