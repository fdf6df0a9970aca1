package sbatch

import (
	"context"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// The intervals between requests of sbatch --wait.
const (
	firstLook = 200 * time.Millisecond
	lastLook  = 10 * time.Second
)

// wait waits until all rows of the job have ended. The error carries the highest exit
// code.
func (o *Options) wait(ctx context.Context, cluster Cluster, id int64) error {
	filter := jobs.Filter{IDs: []string{strconv.FormatInt(id, 10)}, States: jobs.AllStates,
		Fields: []string{"id", "state", "exitCode", "signal", "nodeList"}}
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		list, err := cluster.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		if code, over := outcome(list.Items); over {
			if code != 0 {
				return &slurmerr.Error{Code: code}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// outcome returns the highest exit code of the rows, and whether all have ended. A job
// that a signal killed counts as 1. As in Slurm, jobs that are no longer in the queue or
// never started have no exit code.
func outcome(rows []status.Job) (code int, over bool) {
	for _, r := range rows {
		switch r.State {
		case "PENDING", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "":
			return 0, false
		case "COMPLETED":
		default:
			if r.NodeList != "" { // it had started
				code = max(code, 1)
			}
		}
		if r.Signal != 0 {
			code = max(code, 1)
		}
		code = max(code, int(r.ExitCode))
	}
	return code, true
}
