package planner

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

// Bounds of what questions for a start may cost: they are answered one at a
// time, so that the plan that counts has the other processors, and nobody's
// take more than a share of the time.
const (
	// forecastWait is how long one waits for its turn and its plan; the API server
	// waits 10 seconds for the answer.
	forecastWait = 5 * time.Second
	// forecastShare is the part of the time that one user's plans may take, and
	// forecastBurst how much of it at once.
	forecastShare = 0.25
	forecastBurst = 2 * time.Second
)

// forecasts are the questions in progress. The zero value is ready.
type forecasts struct {
	mu    sync.Mutex
	turn  chan struct{}
	spent map[string]*rate.Limiter // by user; in milliseconds of planning
}

// of is what the user may still spend, and who holds the turn.
func (f *forecasts) of(user string) (*rate.Limiter, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turn == nil {
		f.turn, f.spent = make(chan struct{}, 1), map[string]*rate.Limiter{}
	}
	l := f.spent[user]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(forecastShare*1000), int(forecastBurst.Milliseconds()))
		f.spent[user] = l
	}
	return l, f.turn
}

// Forecast says when and where the job would start if it were submitted now; ok
// is false where that was not worked out, because too many ask. The job is only
// read: it has a number that no job has, and none of its components' is taken.
// As with Slurm, what it would wait for beside resources (a hold, other jobs)
// does not count. Safe for concurrent use; the running plan does not wait for it.
func (p *Planner) Forecast(ctx context.Context, b *v1alpha1.BatchJob) (f *wire.Forecast, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, forecastWait)
	defer cancel()
	left, turn := p.forecasts.of(b.Spec.User)
	if left.TokensAt(p.now()) < 1 {
		return nil, false
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if left.TokensAt(p.now()) < 1 { // others of the user's were answered meanwhile
		<-turn
		return nil, false
	}
	answer := make(chan *wire.Forecast, 1)
	go func() { // a plan that has begun is finished
		defer func() { <-turn }()
		began := time.Now()
		answer <- p.forecast(b)
		cost := min(max(1, time.Since(began).Milliseconds()), forecastBurst.Milliseconds())
		left.ReserveN(p.now(), int(cost))
	}()
	select {
	case f = <-answer:
		return f, true
	case <-ctx.Done():
		return nil, false
	}
}

// forecast plans everything, with the job. That some jobs are ahead of all
// others because running ones make room for them is known to Run alone.
func (p *Planner) forecast(b *v1alpha1.BatchJob) *wire.Forecast {
	now := p.now()
	in := p.input(now, nil)
	parts := hypothetical(b)
	in.Jobs = append(in.Jobs[:len(in.Jobs):len(in.Jobs)], parts...)
	view := snapshot.Build(in)
	first := map[int64]backfill.Decision{} // of an array the first task
	for _, d := range view.Plan().Decisions {
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
		f.Start = max(f.Start, d.Start)
		w := view.Wanted(d.ID)
		one := wire.ForecastPart{ID: int64(i), Partition: w.In(d.Choice), Nodes: hostlist.Fold(view.Names(d))}
		for _, a := range d.Nodes {
			one.CPUs += int64(a.CPUCount)
		}
		f.Parts = append(f.Parts, one)
	}
	return f
}

// hypothetical are the jobs that would come of b.
func hypothetical(b *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
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
