package control

import (
	"context"
	"sync"
)

// locks are locks by number, created on demand.
type locks struct {
	mu   sync.Mutex
	held map[int64]*lock
}

type lock struct {
	holder chan struct{} // has an element while the lock is held
	users  int           // number of goroutines that hold it or wait for it
}

// LockArray locks the array in this process: only the caller may split tasks off it, or
// remove tasks that are not split off, until it calls unlock, once. The error is that of
// ctx, if it ends while another caller holds the lock.
func (c *Cluster) LockArray(ctx context.Context, id int64) (unlock func(), err error) {
	x := c.arrays.acquire(id)
	select {
	case x.holder <- struct{}{}:
		return func() {
			<-x.holder
			c.arrays.release(id, x)
		}, nil
	case <-ctx.Done():
		c.arrays.release(id, x)
		return nil, ctx.Err()
	}
}

// acquire returns the lock with that number, and counts the caller among its users.
func (l *locks) acquire(id int64) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[int64]*lock{}
	}
	x := l.held[id]
	if x == nil {
		x = &lock{holder: make(chan struct{}, 1)}
		l.held[id] = x
	}
	x.users++
	return x
}

// release removes the caller from the users of the lock; the last one removes the lock.
func (l *locks) release(id int64, x *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.users--; x.users == 0 {
		delete(l.held, id)
	}
}
