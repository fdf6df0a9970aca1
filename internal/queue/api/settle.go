package api

import (
	"context"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// settleEvery is how often the states are looked at.
const settleEvery = 10 * time.Millisecond

// settle returns when the jobs that were suspended or resumed show it, as in
// Slurm, or when that takes too long: the request stands all the same.
func (a *API) settle(ctx context.Context, targets []target, stop bool) {
	if a.Operations.Settle == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.Operations.Settle)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for i := range targets {
		t := &targets[i]
		for t.row != nil && t.Error == "" && !a.settled(t.row.ID, stop) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// settled tells whether the job is suspended, or runs, as it should, or does
// neither any more.
func (a *API) settled(id int64, stop bool) bool {
	row := a.Table.Get(id)
	if row == nil {
		return true
	}
	if stop {
		return row.State != v1alpha1.StateRunning
	}
	return row.State != v1alpha1.StateSuspended
}
