package data

import (
	"context"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// EachJob calls fn with every job that passes f now. The rows arrive in parts, so
// that a long queue is never in memory as a whole.
func EachJob(ctx context.Context, c Cluster, f jobs.Filter, fn func(*status.Job)) error {
	var lost error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := c.Watch(ctx, f, func(e *status.JobEvent) error {
		for i := range e.Items {
			fn(&e.Items[i])
		}
		if e.Revision != "" {
			return jobs.ErrStopWatch
		}
		return nil
	}, func(err error) { lost = err; cancel() })
	if lost != nil {
		return lost
	}
	return err
}
