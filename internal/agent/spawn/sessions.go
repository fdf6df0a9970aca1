package spawn

import (
	"sync"
	"time"
)

// sessions ends what tasks leave behind. Looking for it reads all of /proc, so
// the sessions that come while one look is on share the next. Safe for
// concurrent use.
type sessions struct {
	mu      sync.Mutex
	next    *sweep // that has not begun; nil: nobody waits
	running bool
}

// sweep is one look for the processes of some sessions.
type sweep struct {
	ids   map[int]bool
	limit time.Duration
	done  chan struct{}
}

// EndSession kills every descendant in a session whose leader has ended, until
// there is none, or for as long as limit.
func (s *Spawner) EndSession(id int, limit time.Duration) {
	x := &s.sessions
	x.mu.Lock()
	if x.next == nil {
		x.next = &sweep{ids: map[int]bool{}, done: make(chan struct{})}
	}
	mine := x.next
	mine.ids[id], mine.limit = true, max(mine.limit, limit)
	if !x.running {
		x.running = true
		go x.run()
	}
	x.mu.Unlock()
	<-mine.done
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
		KillAll(w.limit, func(p Proc) bool { return w.ids[p.Session] })
		close(w.done)
	}
}
