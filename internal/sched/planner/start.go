package planner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/translate/array"
)

// placements returns the placements of the jobs that start now. Those of the tasks of
// one array, and of the components of one heterogeneous job, belong together.
func (p *Planner) placements(o outcome) [][]starter.Placement {
	var groups [][]starter.Placement
	index := map[int64]int{} // of the group of an array or heterogeneous job
	allocator := o.snapshot.NewAllocator()
	for _, d := range o.decisions {
		if !d.StartNow {
			continue
		}
		info := o.snapshot.Info(d.ID)
		placement := starter.Placement{
			Job:         o.snapshot.Job(d.ID),
			Partition:   info.PartitionOf(d),
			TimeLimit:   info.TimeLimitOf(d),
			Priority:    info.Priority,
			Allocation:  allocator.Allocation(d),
			Reservation: o.snapshot.MagneticReservation(d),
		}
		key := d.ID
		if het := array.HetID(placement.Job); het != 0 {
			key = het
		}
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		if tasks := info.Tasks(); len(tasks) > 0 {
			placement.Task = &tasks[len(groups[i])]
		}
		groups[i] = append(groups[i], placement)
	}
	return groups
}

// maxConcurrentStarts bounds the placements that are written at the same time.
const maxConcurrentStarts = 16

// startRetry is the delay of the cycle that is requested after a start failed.
const startRetry = time.Second

// start writes the placements of a cycle that began at that time, those of one group together.
// Jobs whose start fails are planned again.
func (p *Planner) start(ctx context.Context, cycle time.Time, groups [][]starter.Placement) {
	planned := p.now()
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentStarts)
	for _, group := range groups {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := p.place(ctx, group)
			if err == nil && p.Placed != nil {
				for i := range group {
					p.Placed(group[i].Job, group[i].Task, cycle, planned)
				}
			}
			if err != nil && !errors.Is(err, starter.ErrChanged) && ctx.Err() == nil {
				p.log.Warn("job not started", "job", group[0].Job.Spec.JobID, "error", err)
				time.AfterFunc(startRetry, p.changes.requestCycle)
			}
		})
	}
	wg.Wait()
}

func (p *Planner) place(ctx context.Context, group []starter.Placement) (err error) {
	switch {
	case group[0].Task != nil:
		err = p.starter.PlaceTasks(ctx, group)
	case len(group) > 1:
		err = p.starter.PlaceTogether(ctx, group)
	default:
		err = p.starter.Place(ctx, group[0])
	}
	if err == nil {
		// The remaining tasks of an array have to preempt again.
		p.preemptors.remove(group[0].Job.Spec.JobID)
	}
	return err
}
