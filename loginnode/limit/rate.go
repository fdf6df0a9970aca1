package limit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often one user may do something: Burst times at once, then PerSecond.
// Zero values mean the default.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Rates limits how fast one user starts something. A user who is too fast waits, and is
// refused if that would take longer than the longest wait. It is safe for concurrent
// use.
type Rates struct {
	what    string
	rate    Rate
	longest time.Duration
	now     func() time.Time

	mu    sync.Mutex
	users map[string]*rate.Limiter
	swept time.Time
}

// NewRates returns rates of a thing, named in the plural for error messages.
func NewRates(what string, r Rate, longest time.Duration, now func() time.Time) *Rates {
	return &Rates{what: what, rate: r, longest: longest, now: now, users: map[string]*rate.Limiter{}, swept: now()}
}

// Wait returns nil when the user may start, and an error if too many are waiting
// already, or ctx ends.
func (r *Rates) Wait(ctx context.Context, user string) error {
	delay, err := r.reserve(user)
	if err != nil || delay == 0 {
		return err
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reserve returns how long the user's next has to wait.
func (r *Rates) reserve(user string) (time.Duration, error) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	l := r.users[user]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(r.rate.PerSecond), r.rate.Burst)
		r.users[user] = l
	}
	one := l.ReserveN(now, 1)
	if delay := one.DelayFrom(now); delay <= r.longest {
		return delay, nil
	}
	one.CancelAt(now)
	return 0, fmt.Errorf("user %s: more than %g %s a second", user, r.rate.PerSecond, r.what)
}

// sweep forgets, once a minute, the users who could do a whole burst.
func (r *Rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for user, l := range r.users {
		if l.TokensAt(now) >= float64(r.rate.Burst) {
			delete(r.users, user)
		}
	}
}
