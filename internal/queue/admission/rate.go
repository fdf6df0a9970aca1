package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/berth-hpc/berth/internal/queue/directory"
)

const (
	// operatorRate and operatorBytes are the factors by which operators' limits are
	// higher than users'.
	operatorRate  = 10
	operatorBytes = 4
	// maxRateWait is how long a submission waits before it is refused for now, so that
	// many submitters at once share the rate evenly.
	maxRateWait = 500 * time.Millisecond
)

// rates limit how fast each caller submits and changes jobs. Safe for concurrent
// use.
type rates struct {
	mu     sync.Mutex
	limits map[string]*rate.Limiter // by the caller's name
}

// limiter returns the caller's limiter with the given rate.
func (x *rates) limiter(name string, r rate.Limit, burst int) *rate.Limiter {
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

// awaitRate returns when the caller's rate permits another request. It refuses the
// request if that takes longer than maxRateWait.
func (a *Admission) awaitRate(ctx context.Context, caller *directory.Caller) error {
	perSecond := a.Rate
	if set := a.Directory.Parameters().SubmitsPerSecond; set != 0 {
		perSecond = float64(set)
	}
	if caller.Trusted || perSecond < 0 {
		return nil
	}
	burst := a.Burst
	if burst == 0 {
		burst = max(1, int(perSecond*BurstTime.Seconds()))
	}
	if caller.Operator {
		perSecond *= operatorRate
		burst *= operatorRate
	}
	now := a.Now()
	r := a.rates.limiter(caller.Name, rate.Limit(perSecond), burst).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > maxRateWait {
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
