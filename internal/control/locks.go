package control

import "sync"

// locks are mutexes by number, created on demand.
type locks struct {
	mu   sync.Mutex
	held map[int64]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// LockArray locks the array in this process: only the caller may split tasks off it, or
// remove tasks that are not split off. unlock releases it.
func (c *Cluster) LockArray(id int64) (unlock func()) {
	l := &c.arrays
	l.mu.Lock()
	if l.held == nil {
		l.held = map[int64]*lock{}
	}
	x := l.held[id]
	if x == nil {
		x = &lock{}
		l.held[id] = x
	}
	x.users++
	l.mu.Unlock()
	x.Lock()
	return func() {
		x.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(l.held, id)
		}
	}
}
