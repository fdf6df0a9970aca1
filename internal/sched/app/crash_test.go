package app_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// crashTime is how long the jobs may take in the worst case.
const crashTime = 3 * time.Minute

// crashSize is how many jobs run and how often the scheduler dies: with
// BERTH_TEST_FULL set as often as it takes to meet rare moments.
func crashSize() (jobs, kills int) {
	if os.Getenv("BERTH_TEST_FULL") != "" {
		return 60, 12
	}
	return 24, 5
}

// TestNothingIsLostWhenTheSchedulerIsKilled runs many jobs on a local cluster
// while the scheduler process dies by SIGKILL again and again: every job runs
// once, and accounting has it once.
func TestNothingIsLostWhenTheSchedulerIsKilled(t *testing.T) {
	jobs, kills := crashSize()
	killed(t, "", jobs, kills)
}

// TestNoRecordIsLostInPostgresWhenTheSchedulerIsKilled is the same, shorter,
// with the other database.
func TestNoRecordIsLostInPostgresWhenTheSchedulerIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	jobs, kills := crashSize()
	killed(t, accttest.Postgres(t), jobs/2, kills/2)
}

// killed runs jobs and kills the scheduler so often; storage "" is the local
// cluster's own database.
func killed(t *testing.T, storage string, crashJobs, crashKills int) {
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	dir := t.TempDir()
	bin := programs(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), crashTime)
	defer cancel()
	state := filepath.Join(dir, "state")
	up(ctx, t, bin, state)
	args, err := os.ReadFile(filepath.Join(state, "scheduler.args"))
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields(string(args))
	if storage == "" {
		storage = storageOf(t, flags)
	}
	flags = append(flags, "--accounting-storage="+storage)
	s := &victim{t: t, path: filepath.Join(bin, "scheduler"), args: flags, log: filepath.Join(dir, "scheduler.log")}
	s.start()
	t.Cleanup(s.stop)

	c := adminClient(t, filepath.Join(state, "kubeconfig"))
	journal := filepath.Join(dir, "journal")
	submitted := make(chan error, 1)
	go func() { submitted <- submitAll(ctx, c, crashJobs, dir, journal) }()
	for range crashKills {
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond) // at a random moment: that is the test
		s.stop()
		s.start()
	}
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	awaitEnd(ctx, t, c, s, crashJobs)
	checkJournal(t, journal, crashJobs)
	checkRecords(ctx, t, storage, crashJobs)
}

// storageOf is the database that the scheduler's flags name.
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

// checkRecords: accounting has every job once, as it ended.
func checkRecords(ctx context.Context, t *testing.T, storage string, jobs int) {
	t.Helper()
	store, err := acct.Open(context.WithoutCancel(ctx), storage)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for {
		list, err := store.Find(context.WithoutCancel(ctx), &status.RecordQuery{Duplicates: true})
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
			t.Fatalf("%d records of %d jobs, %d of them as they ended, want %d: %+v", len(list), len(ids), ended, jobs, list)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// programs is the folder of the programs that a cluster consists of: those of
// make build, or made here where there are none.
func programs(t *testing.T, dir string) string {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	there := true
	for _, name := range []string{"berth-local", "scheduler", "agent", "srun", "berth"} {
		_, err := os.Stat(filepath.Join(bin, name))
		there = there && err == nil
	}
	if there {
		return bin
	}
	bin = filepath.Join(dir, "bin") + "/"
	const version = "-X k8s.io/component-base/version.gitVersion=v1.36.3 " +
		"-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
	const module = "github.com/berth-hpc/berth/cmd/"
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", version, "-o", bin,
		module+"berth-local", module+"scheduler", module+"agent", module+"srun", module+"berth")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// up starts a local cluster without a scheduler.
func up(ctx context.Context, t *testing.T, bin, state string) {
	t.Helper()
	local := filepath.Join(bin, "berth-local")
	cmd := exec.CommandContext(ctx, local, "run", "--scheduler=external", "--nodes=3", "--cpus=8", "--state-dir", state)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(local, "down", "--state-dir", state).CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
}

// victim is a process that is killed and started again.
type victim struct {
	t    *testing.T
	path string
	args []string
	log  string
	cmd  *exec.Cmd
}

func (v *victim) start() {
	log, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer log.Close()
	v.cmd = exec.Command(v.path, v.args...)
	v.cmd.Stdout, v.cmd.Stderr = log, log
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) stop() {
	_ = v.cmd.Process.Signal(syscall.SIGKILL)
	_ = v.cmd.Wait()
}

func adminClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: control.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// submitAll creates the jobs, as often as it takes while the scheduler is down.
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

// awaitEnd waits until every job, so many, is COMPLETED.
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

// checkJournal: every job began once and ended once.
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
			t.Errorf("%q happened %d times", line, n)
		}
	}
}
