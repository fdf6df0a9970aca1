package shares

import (
	"context"
	"sync"
	"time"
)

// Delay answers a refused request late, so that a client which tries again at once
// is not answered as often as it can ask. Safe for concurrent use.
type Delay struct {
	// For is how long an answer is delayed, PerUser how many answers to one user
	// of weight 1 are delayed at the same time; what is beyond is answered at once.
	For     time.Duration
	PerUser int

	mu      sync.Mutex
	delayed map[string]int
}

// Wait returns when the user may be answered, or ctx is over.
func (d *Delay) Wait(ctx context.Context, user string, weight int) {
	if !d.enter(user, weight) {
		return
	}
	defer d.leave(user)
	timer := time.NewTimer(d.For)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (d *Delay) enter(user string, weight int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.delayed[user] >= weight*d.PerUser {
		return false
	}
	if d.delayed == nil {
		d.delayed = map[string]int{}
	}
	d.delayed[user]++
	return true
}

func (d *Delay) leave(user string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.delayed[user]--; d.delayed[user] == 0 {
		delete(d.delayed, user)
	}
}
