package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// TestNoTaskIsLostOrRunTwiceWhenTheSchedulerIsKilled runs an array while the
// scheduler process dies by SIGKILL again and again: while tasks are split
// off, placed, handed from one to the next in the same pod, and reported.
func TestNoTaskIsLostOrRunTwiceWhenTheSchedulerIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	dir := t.TempDir()
	bin := programs(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), crashTime)
	defer cancel()
	tasks, kills := crashSize()
	tasks *= 4
	state := filepath.Join(dir, "state")
	up(ctx, t, bin, state)
	args, err := os.ReadFile(filepath.Join(state, "scheduler.args"))
	if err != nil {
		t.Fatal(err)
	}
	s := &victim{t: t, path: filepath.Join(bin, "scheduler"), args: strings.Fields(string(args)), log: filepath.Join(dir, "scheduler.log")}
	s.start()
	t.Cleanup(s.stop)
	c := adminClient(t, filepath.Join(state, "kubeconfig"))
	journal := filepath.Join(dir, "journal")
	if err := submitArray(ctx, c, tasks, dir, journal); err != nil {
		t.Fatal(err)
	}
	for range kills {
		time.Sleep(time.Duration(500+rand.IntN(2500)) * time.Millisecond) // at a random moment: that is the test
		s.stop()
		s.start()
	}
	awaitEnd(ctx, t, c, s, tasks)
	checkJournal(t, journal, tasks)
}

// submitArray creates one array of so many tasks that write what they do into
// the journal.
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
