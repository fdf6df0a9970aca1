package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
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
	for range kills {
		time.Sleep(time.Duration(500+rand.IntN(2500)) * time.Millisecond) // at a random moment: that is the test
		s.stop()
		s.start()
	}
	awaitEnd(ctx, t, x.client, s, tasks)
	checkJournal(t, journal, tasks)
}

// submitArray creates one array with that number of tasks, which write their progress
// into the journal.
func submitArray(ctx context.Context, c client.Client, tasks int, dir, journal string) error {
	users := &v1alpha1.UserList{}
	if err := c.List(ctx, users); err != nil || len(users.Items) == 0 {
		return fmt.Errorf("no users: %w", err)
	}
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nn=$SLURM_ARRAY_TASK_ID\necho $n start >>%[1]s\nsleep 0.$((n %% 4))\necho $n end >>%[1]s\n", journal)
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: users.Items[0].Spec.Namespace, Name: "j-array000000000000000"},
		Spec: v1alpha1.BatchJobSpec{
			Job: job.Job{Name: "crash", Array: &job.Array{Spec: fmt.Sprintf("0-%d", tasks-1)},
				Time: job.Time{Limit: 5}, Batch: job.Batch{WorkDir: dir, Output: "/dev/null"}},
			Script:      pack.EncodeAll([]byte(script), nil),
			Environment: pack.EncodeAll([]byte("PATH=/usr/bin:/bin\x00"), nil),
		},
	}
	for {
		err := c.Create(ctx, b.DeepCopy())
		if err == nil || client.IgnoreAlreadyExists(err) == nil || ctx.Err() != nil {
			return client.IgnoreAlreadyExists(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
