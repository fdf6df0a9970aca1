package spawn

import (
	"sync"
	"time"
)

// sessions kills the processes that remain in the sessions of ended tasks. A sweep reads
// all of /proc, so requests that arrive during one sweep share the next. It is safe for
// concurrent use.
type sessions struct {
	mu      sync.Mutex
	next    *sweep // the next sweep, not started yet; nil: no request is waiting
	running bool
}

// sweep kills the processes of some sessions.
type sweep struct {
	ids     map[int]bool
	timeout time.Duration
	done    chan struct{}
}

// EndSession kills all descendants in a session whose leader has ended, within the
// timeout.
func (s *Spawner) EndSession(id int, timeout time.Duration) {
	x := &s.sessions
	x.mu.Lock()
	if x.next == nil {
		x.next = &sweep{ids: map[int]bool{}, done: make(chan struct{})}
	}
	w := x.next
	w.ids[id] = true
	w.timeout = max(w.timeout, timeout)
	if !x.running {
		x.running = true
		go x.run()
	}
	x.mu.Unlock()
	<-w.done
}

func (x *sessions) run() {
	for {
		x.mu.Lock()
		w := x.next
		x.next = nil
		x.running = w != nil
		x.mu.Unlock()
		if w == nil {
			return
		}
		KillAll(w.timeout, func(p Proc) bool { return w.ids[p.Session] })
		close(w.done)
	}
}
