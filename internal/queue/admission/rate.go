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
	swept  time.Time                // when sweep last ran
}

// reserve reserves one request of the caller, whose limiter has the given rate.
func (x *rates) reserve(name string, r rate.Limit, burst int, now time.Time) *rate.Reservation {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(now)
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
	return l.ReserveN(now, 1)
}

// sweepInterval is the time between two sweeps.
const sweepInterval = time.Minute

// sweep drops, once in each sweepInterval, the limiters of callers who may send a whole
// burst again: they are like callers without a limiter. The caller holds mu.
func (x *rates) sweep(now time.Time) {
	if now.Sub(x.swept) < sweepInterval {
		return
	}
	x.swept = now
	for name, l := range x.limits {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(x.limits, name)
		}
	}
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
	r := a.rates.reserve(caller.Name, rate.Limit(perSecond), burst, now)
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
