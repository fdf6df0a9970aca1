package loginnode

import (
	"sync"
	"time"
)

// maxRefusalDelay bounds how much slow sources of users and keys delay refusals.
const maxRefusalDelay = 2560 * time.Millisecond

// refusalDelay delays refusals so that their time does not reveal whether a user
// exists: the key files of an existing user may be on a slow file system. Every
// refusal takes as long as the slowest recent look-up, rounded up to least times a
// power of two. It is safe for concurrent use.
type refusalDelay struct {
	least time.Duration
	now   func() time.Time

	mu      sync.Mutex
	slowest time.Duration
	at      time.Time // when slowest was seen
}

// add records the time of a look-up and returns how long its refusal has to take in
// all.
func (r *refusalDelay) add(took time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for r.slowest > r.least && now.Sub(r.at) > time.Minute { // it halves each minute
		r.slowest, r.at = r.slowest/2, r.at.Add(time.Minute)
	}
	if took >= r.slowest {
		r.slowest, r.at = took, now
	}
	total := r.least
	for total < min(r.slowest, maxRefusalDelay) {
		total *= 2
	}
	return total
}
