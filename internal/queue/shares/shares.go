// Package shares divides a server's work among its users: places for requests
// of a kind, which users get in turns (Queue), and time of the processors
// (Pace), so that a flood of requests by one user is slowed down or refused
// and the others do not notice it.
package shares

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Refusal is the answer to a request that is beyond its user's share. It is
// for a 429 (Too Many Requests).
type Refusal struct {
	What string
	// Own is how many of those the user has; 0: there are too many of
	// everybody's together.
	Own int
	// After is when it may be worth to try again.
	After time.Duration
}

// Error names the limit and what to do.
func (r *Refusal) Error() string {
	if r.Own > 0 {
		return fmt.Sprintf("you have %d %s already; try again when some have ended", r.Own, r.What)
	}
	return fmt.Sprintf("there are too many %s; try again later", r.What)
}

// Seconds is After for a Retry-After header, at least 1.
func (r *Refusal) Seconds() int { return max(1, int(r.After.Round(time.Second)/time.Second)) }

// Pace gives each user so much time of the processors. Who has used it up waits
// until it has come back. Safe for concurrent use.
type Pace struct {
	// Share is the time that a user of weight 1 gets in each second, Burst how
	// much of it can be saved up. Both are needed.
	Share, Burst time.Duration
	// Least is what a request costs at least.
	Least time.Duration

	mu    sync.Mutex
	users map[string]*rate.Limiter
}

// maxUsers is how many users are followed before those who have saved up
// everything, who are as good as new, are forgotten.
const maxUsers = 1000

// Await returns when the user has time left, with an error when ctx ends
// first or would, by its deadline.
func (p *Pace) Await(ctx context.Context, user string, weight int) error {
	return p.of(user, weight).WaitN(ctx, 1)
}

// Charge takes the time that a request took off the user's share.
func (p *Pace) Charge(user string, weight int, took time.Duration) {
	l := p.of(user, weight)
	l.ReserveN(time.Now(), min(int(max(took, p.Least)/time.Microsecond), l.Burst()))
}

func (p *Pace) of(user string, weight int) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.users[user]
	if l == nil {
		if p.users == nil {
			p.users = map[string]*rate.Limiter{}
		}
		if len(p.users) >= maxUsers {
			p.forgetIdle()
		}
		l = rate.NewLimiter(rate.Limit(weight)*rate.Limit(p.Share.Microseconds()), weight*int(p.Burst.Microseconds()))
		p.users[user] = l
	}
	return l
}

// forgetIdle drops the users who have saved up everything. The caller holds mu.
func (p *Pace) forgetIdle() {
	now := time.Now()
	for user, l := range p.users {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(p.users, user)
		}
	}
}
