package starter

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/tasks"
)

// maxConcurrentTasks limits the tasks of one array that are placed at the same time.
const maxConcurrentTasks = 16

// PlaceTasks splits tasks off an array and places them. All placements are of
// the same array and name its tasks. A task that reuses the pod of an earlier job is
// RUNNING as soon as its object is created. The error is ErrChanged if the array must be
// planned again.
func (s *Starter) PlaceTasks(ctx context.Context, ps []Placement) error {
	whole := ps[0].Job
	if known, ok := s.cluster.Job(whole.Spec.JobID); !ok || known != whole || !known.AwaitsStart() {
		return ErrChanged
	}
	indexes := make([]int32, len(ps))
	places := make([]*agentapi.Place, len(ps))
	statuses := map[int32]*v1alpha1.BatchJobStatus{} // of the tasks that reuse a pod
	for i := range ps {
		indexes[i] = *ps[i].Task
		if places[i] = s.reserveAgent(&ps[i]); places[i] != nil {
			now := s.now()
			st := control.StatusAfter(&v1alpha1.BatchJobStatus{}, now, ps[i].change(now, runningAt(places[i])))
			statuses[indexes[i]] = &st
		}
	}
	jobs, err := tasks.Split(ctx, s.cluster, whole.Spec.JobID, indexes, statuses)
	if err != nil {
		for _, x := range places {
			if x != nil {
				s.Pool.Release(x)
			}
		}
		if errors.Is(err, tasks.ErrGone) {
			err = ErrChanged
		}
		return err
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentTasks)
	errs := make([]error, len(ps))
	for i, p := range ps {
		p.Job, p.Task = jobs[i], nil
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = s.placeTask(ctx, p, places[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// placeTask places one task: at x, unless that is nil or the task runs there already.
func (s *Starter) placeTask(ctx context.Context, p Placement, x *agentapi.Place) error {
	switch b := p.Job; {
	case x == nil:
		return s.Place(ctx, p)
	case b.Status.State == v1alpha1.StateRunning && b.Status.Pods != nil && *b.Status.Pods == x.Host:
		s.Pool.Assign(x, b)
		return nil
	}
	// The last task, which is the array's own job, or a task whose object existed before.
	return s.placeAt(ctx, p, x)
}
