package keeper

import (
	"log/slog"
	"time"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// t0 is the time of the tests, and of the last change of state of schedtest.Attempt.
var t0 = schedtest.Now

// newKeeper returns a keeper of the cluster, at t0.
func newKeeper(c *control.Cluster) *Keeper {
	return New(Config{Cluster: c, Now: func() time.Time { return t0 }, Log: slog.New(slog.DiscardHandler)})
}
