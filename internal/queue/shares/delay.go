package shares

import (
	"context"
	"sync"
	"time"
)

// Delay delays the responses to refused requests, so that a client which retries at
// once cannot send requests as fast as it could. Safe for concurrent use.
type Delay struct {
	// For is how long a response is delayed, PerUser how many responses to a user of
	// weight 1 are delayed at the same time; more of them are sent at once.
	For     time.Duration
	PerUser int

	mu      sync.Mutex
	delayed map[string]int
}

// Wait returns when the response to the user may be sent, or when ctx ends.
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
	d.delayed[user]--
	if d.delayed[user] == 0 {
		delete(d.delayed, user)
	}
}
