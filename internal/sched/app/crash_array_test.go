package app_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/translate/job"
)

// TestNoTaskIsLostOrRunTwiceWhenTheSchedulerIsKilled runs an array while the scheduler
// process is repeatedly killed with SIGKILL: while tasks are split off, placed, run one
// after the other in the same pod, and reported.
func TestNoTaskIsLostOrRunTwiceWhenTheSchedulerIsKilled(t *testing.T) {
	ctx, x := startExternal(t)
	tasks, kills := crashSize()
	tasks *= 4
	s := x.scheduler("scheduler")
	journal := filepath.Join(x.dir, "journal")
	if err := submitArray(ctx, x.client, tasks, x.dir, journal); err != nil {
		t.Fatal(err)
	}
	s.killRepeatedly(kills)
	awaitEnd(ctx, t, x.client, s, tasks)
	checkJournal(t, journal, tasks)
}

// submitArray creates one array with that number of tasks, which write their progress
// into the journal.
func submitArray(ctx context.Context, c client.Client, tasks int, dir, journal string) error {
	script := fmt.Sprintf("#!/bin/sh\nn=$SLURM_ARRAY_TASK_ID\necho $n start >>%[1]s\nsleep 0.$((n %% 4))\necho $n end >>%[1]s\n", journal)
	b, err := crashJob(ctx, c, "j-array000000000000000", dir, script)
	if err != nil {
		return err
	}
	b.Spec.Job.Array = &job.Array{Spec: fmt.Sprintf("0-%d", tasks-1)}
	return createOnce(ctx, c, b)
}
