package query

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// Bounds of what forecasts may cost. They are made one at a time, so that the planner
// has the other processors, and each user has a share of the time.
const (
	// forecastTimeout is how long a request waits for its turn and its plan; the API
	// server waits 10 seconds for the response.
	forecastTimeout = 5 * time.Second
	// forecastShare is the share of the time that the plans of one user may take, and
	// forecastBurst how much they may take at once.
	forecastShare = 0.25
	forecastBurst = 2 * time.Second
)

// forecasts limits the forecasts in progress. The zero value is ready for use.
type forecasts struct {
	mu       sync.Mutex
	slot     chan struct{}
	limiters map[string]*rate.Limiter // by user; tokens are milliseconds of planning
}

// limiterFor returns the limiter of a user, and the slot that one forecast holds at a
// time.
func (f *forecasts) limiterFor(user string) (*rate.Limiter, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slot == nil {
		f.slot, f.limiters = make(chan struct{}, 1), map[string]*rate.Limiter{}
	}
	l := f.limiters[user]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(forecastShare*1000), int(forecastBurst.Milliseconds()))
		f.limiters[user] = l
	}
	return l, f.slot
}

// Forecast returns when and where the job would start if it were submitted now; if it
// could not, the forecast has only a reason. ok is false if there are too many requests
// or ctx ends first. The job is only read; it has a number that no other job has, and its
// components have none yet. As with Slurm, a hold and dependencies are ignored. The
// planner does not wait for a forecast.
func (s *Service) Forecast(ctx context.Context, b *v1alpha1.BatchJob) (f *wire.Forecast, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, forecastTimeout)
	defer cancel()
	limiter, slot := s.forecasts.limiterFor(b.Spec.User)
	if limiter.TokensAt(s.now()) < 1 {
		return nil, false
	}
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if limiter.TokensAt(s.now()) < 1 { // other forecasts of the user came first
		<-slot
		return nil, false
	}
	result := make(chan *wire.Forecast, 1)
	go func() { // a plan that has been started is completed
		defer func() { <-slot }()
		start := s.now()
		result <- s.forecast(b)
		cost := min(max(1, s.now().Sub(start).Milliseconds()), forecastBurst.Milliseconds())
		limiter.ReserveN(s.now(), int(cost))
	}()
	select {
	case f = <-result:
		return f, true
	case <-ctx.Done():
		return nil, false
	}
}

// forecast plans all jobs and b. It ignores the preemptors, which only the planner
// knows.
func (s *Service) forecast(b *v1alpha1.BatchJob) *wire.Forecast {
	in := s.Input(s.now())
	parts := hypotheticalJobs(b)
	in.Jobs = append(in.Jobs[:len(in.Jobs):len(in.Jobs)], parts...)
	snap := snapshot.New(in)
	first := map[int64]backfill.Decision{} // of an array that of the first task
	for _, d := range snap.Plan().Decisions {
		if _, known := first[d.ID]; !known {
			first[d.ID] = d
		}
	}
	f := &wire.Forecast{}
	for i, part := range parts {
		d := first[part.Spec.JobID]
		if d.Nodes == nil {
			return &wire.Forecast{Reason: d.Reason}
		}
		f.Start = max(f.Start, d.Start+d.Boot)
		info := snap.Info(d.ID)
		one := wire.ForecastPart{
			ID: int64(i), Partition: info.PartitionOf(d), Nodes: hostlist.Fold(snap.NodeNames(d)),
		}
		for _, a := range d.Nodes {
			one.CPUs += int64(a.CPUCount)
		}
		f.Parts = append(f.Parts, one)
	}
	return f
}

// hypotheticalJobs returns the jobs that b would become: itself and its further
// components, neither held nor dependent on others.
func hypotheticalJobs(b *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	b = b.DeepCopy()
	b.UID, b.Status = "forecast", v1alpha1.BatchJobStatus{}
	parts := []*v1alpha1.BatchJob{b}
	for i := range b.Spec.Components {
		parts = append(parts, array.Component(b, i))
	}
	for _, part := range parts {
		j := &part.Spec.Job
		j.Hold, j.Dependencies.Items = "", nil
	}
	return parts
}
