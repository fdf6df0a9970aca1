package acct_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// TestListByID: jobs of the queue are found by their own id, and by that of their array or of
// their heterogeneous job.
func TestListByID(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := run(t, acct.Config{Cluster: c, Now: time.Now, Row: func(b *v1alpha1.BatchJob) status.Job {
		j := row(b)
		j.ArrayJobID, j.HetJobID = array.ID(b), array.HetID(b)
		if b.Spec.Task != nil {
			j.ArrayTaskID = "2"
		}
		if b.Spec.Job.Het != nil {
			j.HetOffset = b.Spec.Job.Het.Offset
		}
		return j
	}})
	plain, task, component := batchJob(1, "RUNNING"), batchJob(6, "RUNNING"), batchJob(8, "RUNNING")
	task.Spec.Origin, task.Spec.Task = &v1alpha1.Origin{JobID: 5}, &v1alpha1.ArrayTask{}
	component.Spec.Origin, component.Spec.Job.Het = &v1alpha1.Origin{JobID: 7}, &job.Het{Offset: 1, Size: 2}
	fake.Feed(c, plain)
	fake.Feed(c, task)
	fake.Feed(c, component)
	for id, want := range map[string]int64{"1": 1, "6": 6, "5": 6, "5_2": 6, "8": 8, "7": 8, "7+1": 8, "9": 0} {
		list, _, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		if len(list) == 1 {
			got = list[0].ID
		}
		if got != want || len(list) > 1 {
			t.Errorf("%s: %d records, job %d, want %d", id, len(list), got, want)
		}
	}
}

// While the end of a step is being written, the step is listed with it, and not as one that its
// job's end has cancelled.
func TestListWhileStepsAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := fake.Cluster(interceptor.Funcs{})
	b := batchJob(7, v1alpha1.StateCompleted)
	step := wire.StepRecord{ID: 0, Name: "a", Nodes: []string{"n1"}, Tasks: 1, State: "RUNNING", Start: 120e9}
	first := acct.NewRecorder(acct.Config{Address: path, Cluster: c, Row: row, Now: time.Now})
	fake.Feed(c, b)
	first.RecordSteps(7, 1, []wire.StepRecord{step})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	first.Run(stopped) // writes the job and the step

	c = fake.Cluster(interceptor.Funcs{})
	var list []status.Record
	var r *acct.Recorder
	writes := false
	r = acct.NewRecorder(acct.Config{Address: path, Cluster: c, Now: time.Now,
		Row: func(b *v1alpha1.BatchJob) status.Job { // first called with what is to be written
			if !writes {
				writes = true
				var err error
				if list, _, err = r.List(t.Context(), &status.RecordQuery{Jobs: []string{"7"}}); err != nil {
					t.Error(err)
				}
			}
			return row(b)
		}})
	fake.Feed(c, b)
	step.State, step.Status, step.End = "FAILED", 3, 130e9
	r.RecordSteps(7, 1, []wire.StepRecord{step})
	r.Run(stopped)
	if len(list) != 1 || len(list[0].Steps) != 2 || list[0].Steps[1].State != "FAILED" {
		t.Errorf("listed while it was written: %+v, want step 0 FAILED", list)
	}
}
