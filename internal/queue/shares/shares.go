// Package shares divides the capacity of a server among its users: places for
// requests, which users get in turns (Queue), and processor time (Pace). A flood of
// one user's requests is slowed down or refused, and other users do not notice it.
package shares

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Refusal is the error for a request that is beyond its user's share. It is for a 429
// (Too Many Requests).
type Refusal struct {
	What string
	// Own is how many of those the user has; 0: all users together have too many.
	Own int
	// After is the time after which a retry may succeed.
	After time.Duration
}

// Error returns a message that names the limit and what to do.
func (r *Refusal) Error() string {
	if r.Own > 0 {
		return fmt.Sprintf("you have %d %s already; try again when some have ended", r.Own, r.What)
	}
	return fmt.Sprintf("there are too many %s; try again later", r.What)
}

// Seconds returns After in seconds for the header Retry-After, at least 1.
func (r *Refusal) Seconds() int { return max(1, int(r.After.Round(time.Second)/time.Second)) }

// Pace limits the processor time of each user. A user who has used it up waits until
// there is some again. Safe for concurrent use.
type Pace struct {
	// Share is the time that a user of weight 1 gets in each second, Burst how much of
	// it can accumulate. Both are needed.
	Share, Burst time.Duration
	// Least is the lowest cost of a request.
	Least time.Duration

	mu    sync.Mutex
	users map[string]*rate.Limiter
}

// maxUsers is the number of users above which idle ones are dropped: those who have
// accumulated all of their time are like new users.
const maxUsers = 1000

// Await returns when the user has time left. It returns an error if ctx ends first, or
// would by its deadline.
func (p *Pace) Await(ctx context.Context, user string, weight int) error {
	return p.limiter(user, weight).WaitN(ctx, 1)
}

// Charge subtracts the time that a request took from the user's share.
func (p *Pace) Charge(user string, weight int, took time.Duration) {
	l := p.limiter(user, weight)
	l.ReserveN(time.Now(), min(int(max(took, p.Least)/time.Microsecond), l.Burst()))
}

// limiter returns the limiter of the user.
func (p *Pace) limiter(user string, weight int) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.users[user]
	if l == nil {
		if p.users == nil {
			p.users = map[string]*rate.Limiter{}
		}
		if len(p.users) >= maxUsers {
			p.dropIdle()
		}
		l = rate.NewLimiter(rate.Limit(weight)*rate.Limit(p.Share.Microseconds()), weight*int(p.Burst.Microseconds()))
		p.users[user] = l
	}
	return l
}

// dropIdle drops the users who have accumulated all of their time. The caller holds
// mu.
func (p *Pace) dropIdle() {
	now := time.Now()
	for user, l := range p.users {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(p.users, user)
		}
	}
}
