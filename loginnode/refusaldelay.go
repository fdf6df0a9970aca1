package loginnode

import (
	"sync"
	"time"
)

// mostRefusalDelay bounds what slow sources of users and keys do to refusals.
const maxRefusalDelay = 2560 * time.Millisecond

// refusalDelay makes refusals take times that do not tell what was looked up: a
// known user's key files may be on a slow file system, an unknown user has none.
// Every refusal lasts as long as the slowest look-up of late, rounded up to least,
// twice that, four times that and so on. It is safe for concurrent use.
type refusalDelay struct {
	least time.Duration
	now   func() time.Time

	mu      sync.Mutex
	slowest time.Duration
	at      time.Time // when slowest was seen
}

// add takes a look-up into account and returns how long its refusal has to take
// in all.
func (r *refusalDelay) add(took time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for r.slowest > r.least && now.Sub(r.at) > time.Minute { // it loses half each minute
		r.slowest, r.at = r.slowest/2, r.at.Add(time.Minute)
	}
	if took >= r.slowest {
		r.slowest, r.at = took, now
	}
	whole := r.least
	for whole < min(r.slowest, maxRefusalDelay) {
		whole *= 2
	}
	return whole
}
