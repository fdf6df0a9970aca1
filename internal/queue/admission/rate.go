package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/berth-hpc/berth/internal/queue/directory"
)

const (
	// operatorRate and operatorBytes are how many times a user's rate and bytes
	// operators have.
	operatorRate  = 10
	operatorBytes = 4
	// rateWait is how long a submission is held back before its user is told to
	// come again: many submitters at once then share the rate evenly.
	rateWait = 500 * time.Millisecond
)

// rates follow how fast each caller submits and changes jobs. Safe for
// concurrent use.
type rates struct {
	mu     sync.Mutex
	limits map[string]*rate.Limiter // by the caller's name
}

func (x *rates) of(name string, r rate.Limit, burst int) *rate.Limiter {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.limits[name]
	switch {
	case l == nil:
		if x.limits == nil {
			x.limits = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(r, burst)
		x.limits[name] = l
	case l.Limit() != r || l.Burst() != burst:
		l.SetLimit(r)
		l.SetBurst(burst)
	}
	return l
}

// awaitRate takes one request from the caller's rate. It waits for a moment if
// the rate is used up, and refuses the request if that is not enough.
func (a *Admission) awaitRate(ctx context.Context, caller *directory.Caller) error {
	most := a.Rate
	if set := a.Directory.Parameters().SubmitsPerSecond; set != 0 {
		most = float64(set)
	}
	if caller.Trusted || most < 0 {
		return nil
	}
	burst := a.Burst
	if burst == 0 {
		burst = max(1, int(most*BurstTime.Seconds()))
	}
	if caller.Operator {
		most, burst = most*operatorRate, burst*operatorRate
	}
	now := a.Now()
	r := a.rates.of(caller.Name, rate.Limit(most), burst).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > rateWait {
		r.CancelAt(now)
		return refuseForNow(1)
	}
	if wait == 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
