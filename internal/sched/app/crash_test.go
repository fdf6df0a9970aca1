package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

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

// runWhileKilled runs jobs while the scheduler is repeatedly killed; storage "" is the local
// cluster's own database.
func runWhileKilled(t *testing.T, storage string, jobs, kills int) {
	ctx, x := startExternal(t)
	if storage == "" {
		storage = storageOf(t, x.flags)
	}
	s := x.scheduler("scheduler", "--accounting-storage="+storage)
	journal := filepath.Join(x.dir, "journal")
	submitted := make(chan error, 1)
	go func() { submitted <- submitAll(ctx, x.client, jobs, x.dir, journal) }()
	s.killRepeatedly(kills)
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	awaitEnd(ctx, t, x.client, s, jobs)
	checkJournal(t, journal, jobs)
	checkRecords(ctx, t, storage, jobs)
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

// submitAll creates jobs that write their progress into the journal.
func submitAll(ctx context.Context, c client.Client, jobs int, dir, journal string) error {
	for i := range jobs {
		nodes := int32(1 + i%3)
		script := fmt.Sprintf("#!/bin/sh\necho $SLURM_JOB_ID start >>%[1]s\nsleep 0.%[2]d\necho $SLURM_JOB_ID end >>%[1]s\n", journal, i%10)
		b, err := crashJob(ctx, c, fmt.Sprintf("j-%020d", i), dir, script)
		if err != nil {
			return err
		}
		b.Spec.Job.Shape = job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: int32(1 + i%4)}
		if err := createOnce(ctx, c, b); err != nil {
			return err
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
