package directory

import (
	"sync"
	"sync/atomic"
)

// cached is a value derived from the stores. It is built when it is needed for
// the first time, and again after a change. Safe for concurrent use.
type cached[T any] struct {
	build func() *T

	changes atomic.Uint64 // how often invalidate was called
	value   atomic.Pointer[builtValue[T]]
	mu      sync.Mutex // held while the value is built
}

// builtValue is a value and the number of changes that came before its build.
type builtValue[T any] struct {
	of      *T
	changes uint64
}

// invalidate has the next get build the value again.
func (c *cached[T]) invalidate() { c.changes.Add(1) }

// get returns a value that reflects every change before the call.
func (c *cached[T]) get() *T {
	if v := c.value.Load(); v != nil && v.changes == c.changes.Load() {
		return v.of
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := c.changes.Load() // before reading: the value may miss a change that comes meanwhile
	if v := c.value.Load(); v != nil && v.changes == changes {
		return v.of
	}
	v := &builtValue[T]{c.build(), changes}
	c.value.Store(v)
	return v.of
}
