package app_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// crashSize returns how many jobs run and how often the scheduler is killed. With
// BERTH_TEST_FULL it is killed often enough to hit rare moments.
func crashSize() (jobs, kills int) {
	if os.Getenv("BERTH_TEST_FULL") != "" {
		return 60, 12
	}
	return 24, 5
}

// TestNothingIsLostWhenTheSchedulerIsKilled runs many jobs on a local cluster while the
// scheduler process is repeatedly killed with SIGKILL: every job runs once, and
// accounting has it once.
func TestNothingIsLostWhenTheSchedulerIsKilled(t *testing.T) {
	jobs, kills := crashSize()
	runWhileKilled(t, "", jobs, kills)
}

// TestNoRecordIsLostInPostgresWhenTheSchedulerIsKilled is the same with fewer jobs and
// PostgreSQL.
func TestNoRecordIsLostInPostgresWhenTheSchedulerIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	jobs, kills := crashSize()
	runWhileKilled(t, accttest.Postgres(t), jobs/2, kills/2)
}

// TestStandbyReplacesDeadLeader: the leases are much longer than the test, so that a standby
// that waited for the end of the leader's lease would not lead.
func TestStandbyReplacesDeadLeader(t *testing.T) {
	ctx, x := startExternal(t)
	x.flags = slices.DeleteFunc(x.flags, func(f string) bool {
		return strings.HasPrefix(f, "--identity=") || strings.HasPrefix(f, "--bind-address=") ||
			strings.HasPrefix(f, "--public-url=")
	})
	var both [2]*victim
	for i := range both {
		at := freeAddress(t)
		both[i] = x.scheduler(fmt.Sprint("scheduler", i), "--lease-duration=1h", "--bind-address="+at,
			"--public-url=https://"+at)
	}
	leader := func() string {
		l := &coordinationv1.Lease{}
		_ = x.client.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: "berth-scheduler"}, l)
		if l.Spec.HolderIdentity == nil || l.Annotations["berth.hpc/leader-address"] == "" {
			return ""
		}
		return *l.Spec.HolderIdentity
	}
	eventually.Holds(t, "a process leads", func() bool { return leader() != "" })
	first := leader()
	v := both[0]
	if strings.Contains(first, fmt.Sprintf("-%d-", both[1].cmd.Process.Pid)) {
		v = both[1]
	}
	eventually.Holds(t, "the leader schedules", v.logs("msg=leading"))
	eventually.Holds(t, "the standby follows the leader", func() bool {
		return both[0].logs("msg=\"following the leader\"")() || both[1].logs("msg=\"following the leader\"")()
	})
	v.stop()
	eventually.Holds(t, "the standby leads", func() bool { return leader() != "" && leader() != first })
}

// runWhileKilled runs jobs and kills the scheduler that many times meanwhile; storage "" is
// the local cluster's own database.
func runWhileKilled(t *testing.T, storage string, crashJobs, crashKills int) {
	ctx, x := startExternal(t)
	if storage == "" {
		storage = storageOf(t, x.flags)
	}
	s := x.scheduler("scheduler", "--accounting-storage="+storage)
	journal := filepath.Join(x.dir, "journal")
	submitted := make(chan error, 1)
	go func() { submitted <- submitAll(ctx, x.client, crashJobs, x.dir, journal) }()
	for range crashKills {
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond) // at a random moment: that is the test
		s.stop()
		s.start()
	}
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	awaitEnd(ctx, t, x.client, s, crashJobs)
	checkJournal(t, journal, crashJobs)
	checkRecords(ctx, t, storage, crashJobs)
}

// storageOf returns the database in the flags of the scheduler.
func storageOf(t *testing.T, flags []string) string {
	t.Helper()
	for _, f := range flags {
		if path, ok := strings.CutPrefix(f, "--accounting-storage="); ok {
			return path
		}
	}
	t.Fatal("the local cluster names no database")
	return ""
}

// checkRecords checks that accounting has every job once, with its final state.
func checkRecords(ctx context.Context, t *testing.T, storage string, jobs int) {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(ctx), storage)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for {
		list, err := db.Find(context.WithoutCancel(ctx), &status.RecordQuery{Duplicates: true})
		if err != nil {
			t.Fatal(err)
		}
		ids, ended := map[int64]bool{}, 0
		for _, r := range list {
			ids[r.ID] = true
			if r.State == v1alpha1.StateCompleted && r.ExitCode == 0 && r.Start > 0 && r.End >= r.Start {
				ended++
			}
		}
		if len(list) == jobs && len(ids) == jobs && ended == jobs {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d records of %d jobs, %d of them of completed jobs, want %d: %+v", len(list), len(ids), ended, jobs, list)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// submitAll creates the jobs. It retries while the scheduler is down.
func submitAll(ctx context.Context, c client.Client, jobs int, dir, journal string) error {
	users := &v1alpha1.UserList{}
	if err := c.List(ctx, users); err != nil || len(users.Items) == 0 {
		return fmt.Errorf("no users: %w", err)
	}
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	for i := range jobs {
		nodes := int32(1 + i%3)
		script := fmt.Sprintf("#!/bin/sh\necho $SLURM_JOB_ID start >>%[1]s\nsleep 0.%[2]d\necho $SLURM_JOB_ID end >>%[1]s\n", journal, i%10)
		b := &v1alpha1.BatchJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: users.Items[0].Spec.Namespace, Name: fmt.Sprintf("j-%020d", i)},
			Spec: v1alpha1.BatchJobSpec{
				Job: job.Job{Name: "crash", Shape: job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: int32(1 + i%4)},
					Time: job.Time{Limit: 5}, Batch: job.Batch{WorkDir: dir, Output: "/dev/null"}},
				Script:      pack.EncodeAll([]byte(script), nil),
				Environment: pack.EncodeAll([]byte("PATH=/usr/bin:/bin\x00"), nil),
			},
		}
		for {
			err := c.Create(ctx, b.DeepCopy())
			if err == nil || client.IgnoreAlreadyExists(err) == nil {
				break
			}
			if ctx.Err() != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// awaitEnd waits until that many jobs are COMPLETED.
func awaitEnd(ctx context.Context, t *testing.T, c client.Client, s *victim, want int) {
	t.Helper()
	for {
		jobs := &v1alpha1.BatchJobList{}
		if err := c.List(context.WithoutCancel(ctx), jobs); err != nil {
			t.Fatal(err)
		}
		states, ids := map[string]int{}, map[int64]bool{}
		var unfinished []v1alpha1.BatchJobStatus
		for _, j := range jobs.Items {
			states[j.Status.State]++
			ids[j.Spec.JobID] = true
			if j.Status.State != v1alpha1.StateCompleted {
				unfinished = append(unfinished, j.Status)
			}
		}
		if len(ids) == want && states[v1alpha1.StateCompleted] == want {
			return
		}
		if ctx.Err() != nil {
			log, _ := os.ReadFile(s.log)
			t.Fatalf("%d ids, states %v, unfinished %v\n%s", len(ids), states, unfinished, tail(log))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func tail(b []byte) []byte { return b[max(0, len(b)-8000):] }

// checkJournal checks that every job wrote its start once and its end once.
func checkJournal(t *testing.T, path string, jobs int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range bytes.Lines(text) {
		count[strings.TrimSpace(string(line))]++
	}
	if len(count) != 2*jobs {
		t.Errorf("%d different lines for %d jobs", len(count), jobs)
	}
	for line, n := range count {
		if n != 1 {
			t.Errorf("the journal has %q %d times, want once", line, n)
		}
	}
}
