package operations_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/status"
)

// errorsOf returns the messages of outcomes.
func errorsOf(outcomes []status.OperationStatus) []string {
	var out []string
	for _, o := range outcomes {
		out = append(out, o.Error)
	}
	return out
}

// TestEndedJobsOfAFilterAreNoFailures: between the moment when a filter chooses a
// job and the moment when it is cancelled, the job may end. That is a failure of
// `scancel 1`, but not of `scancel -u anna`.
func TestEndedJobsOfAFilterAreNoFailures(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StateCompleted
	})
	c.add(t, 2, "anna", fake.InState(v1alpha1.StateRunning))
	for _, tt := range []struct {
		op   status.Operation
		want []string
	}{
		{status.Operation{Users: []string{"anna"}, States: []string{"COMPLETING", "RUNNING"}}, []string{""}},
		{status.Operation{Jobs: []string{"1"}}, []string{"Job/step already completing or completed"}},
	} {
		tt.op.Verb = status.OpCancel
		if got := errorsOf(c.execute(t, "anna", tt.op)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.op, got, tt.want)
		}
	}
}

// To scancel with filters, a job that has ended does not exist, as in Slurm. One that a
// filter excludes is no error.
func TestFiltersKnowNoEndedJobs(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", fake.InState(v1alpha1.StateCompleted))
	c.add(t, 2, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StateCompleted
	})
	c.add(t, 3, "anna", fake.InState(v1alpha1.StateRunning))
	const unknown = "Invalid job id specified"
	for _, tt := range []struct {
		id, user, partition, want string
	}{
		{"1", "anna", "", unknown},
		{"1", "", "nosuch", unknown},
		{"2", "anna", "", unknown},
		{"99", "", "nosuch", unknown},
		{"3", "", "", ""},
		{"3", "anna", "", ""},
	} {
		op := status.Operation{Verb: status.OpCancel, Jobs: []string{tt.id}}
		if tt.user != "" {
			op.Users = []string{tt.user}
		} else {
			op.Partitions = []string{tt.partition}
		}
		if got := strings.Join(errorsOf(c.execute(t, "anna", op)), ","); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt, got, tt.want)
		}
		excluded := tt.id == "3" && tt.user == ""
		if cancelled := tt.id == "3" && c.stored(t, 3).Cancel != nil; excluded && cancelled {
			t.Errorf("%+v: cancelled", tt)
		}
	}
	if c.stored(t, 3).Cancel == nil {
		t.Error("the job of the filter was not cancelled")
	}
}

// SIGKILL cancels a job that is pending, also with --batch and --full. Other signals fail.
func TestSignalsToPendingJobs(t *testing.T) {
	c := newCluster(t)
	for i, tt := range []struct {
		op   status.Operation
		want string
	}{
		{status.Operation{Signal: 9}, ""},
		{status.Operation{Signal: 9, Batch: true}, ""},
		{status.Operation{Signal: 9, Full: true}, ""},
		{status.Operation{Signal: 10, Batch: true}, "Job can not be altered now, try again later"},
	} {
		id := int64(i) + 1
		c.add(t, id, "anna", nil)
		tt.op.Verb, tt.op.Jobs = status.OpSignal, []string{strconv.FormatInt(id, 10)}
		if got := c.operation(t, "anna", tt.op).Error; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.op, got, tt.want)
		}
		if cancelled := c.stored(t, id).Cancel != nil; cancelled != (tt.want == "") {
			t.Errorf("%+v: cancelled is %v", tt.op, cancelled)
		}
	}
}

func TestOperations(t *testing.T) {
	c := newCluster(t)
	held := func(kind string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = kind }
	}
	no := false
	c.add(t, 1, "anna", nil)
	c.add(t, 2, "ben", nil)
	c.add(t, 3, "anna", fake.InState(v1alpha1.StateRunning))
	c.add(t, 4, "anna", fake.InState(v1alpha1.StateCompleted))
	c.add(t, 5, "anna", held("admin"))
	c.add(t, 6, "anna", held("user"))
	c.add(t, 7, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Spec.Job.Batch.Requeue = v1alpha1.StateRunning, &no
	})
	c.add(t, 8, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StatePending
	})
	c.add(t, 9, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StateCompleted
	})
	c.add(t, 10, "anna", func(b *v1alpha1.BatchJob) { b.Status.State, b.Spec.Requeues = v1alpha1.StateFailed, 1 })
	c.add(t, 11, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Spec.Cancel = v1alpha1.StateRunning, &v1alpha1.CancelRequest{By: "anna"}
	})
	for _, tt := range []struct {
		user, verb, job, want string
	}{
		{"anna", "cancel", "8", ""}, // it would return to the queue in a moment
		{"anna", "cancel", "9", "Job/step already completing or completed"},
		{"anna", "cancel", "10", ""},
		{"anna", "hold", "1", ""},
		{"anna", "hold", "2", "Invalid user id"},
		{"anna", "hold", "3", ""},
		{"anna", "hold", "4", "Job has already finished"},
		{"anna", "release", "5", "Access/permission denied"},
		{"opal", "release", "5", ""},
		{"anna", "release", "6", ""},
		{"opal", "hold", "6", ""},
		{"anna", "requeue", "1", "Job is pending execution"},
		{"anna", "requeue", "7", "Requested operation is presently disabled"},
		{"anna", "requeue", "2", "Access/permission denied"},
		{"anna", "requeue", "3", ""},
		{"anna", "requeue", "11", "Job/step already completing or completed"}, // it would be cancelled all the same
		{"anna", "signal", "1", "Job can not be altered now, try again later"},
		{"anna", "signal", "3", ""},
		{"ben", "signal", "3", "Access/permission denied"},
		{"anna", "cancel", "2", "Access/permission denied"},
		{"anna", "cancel", "4", "Job/step already completing or completed"},
		{"anna", "cancel", "99", "Invalid job id specified"},
		{"anna", "cancel", "3_1", "Invalid job id specified"},
		{"anna", "cancel", "3+1", "Invalid job id specified"},
		{"anna", "cancel", "x", "Invalid job id specified"},
		{"anna", "cancel", "3", ""},
		{"opal", "cancel", "2", ""},
	} {
		op := status.Operation{Verb: tt.verb, Jobs: []string{tt.job}, Signal: 10}
		if got := c.operation(t, tt.user, op); got.Error != tt.want || got.Job != tt.job {
			t.Errorf("%s %s %s: %+v, want %q", tt.user, tt.verb, tt.job, got, tt.want)
		}
	}
	if s := c.stored(t, 1); s.Job.Hold != "user" {
		t.Errorf("1: %+v", s)
	}
	sent := c.agents.Sent()
	if s := c.stored(t, 3); s.Requeues != 1 || s.Cancel == nil || s.Cancel.By != "anna" {
		t.Errorf("3: %+v", s)
	}
	if len(sent) != 1 || sent[0].Signal != 10 {
		t.Errorf("sent %+v", sent)
	}
	for _, id := range []int64{8, 10} {
		if c.stored(t, id).Cancel == nil {
			t.Errorf("%d is not cancelled", id)
		}
	}
	if s := c.stored(t, 6); s.Job.Hold != "admin" {
		t.Errorf("6: %+v", s)
	}
	if s := c.stored(t, 5); s.Job.Hold != "" {
		t.Errorf("5: %+v", s)
	}
	if s := c.stored(t, 2); s.Cancel.By != "opal" {
		t.Errorf("2: %+v", s)
	}
}

func TestOperationByFilter(t *testing.T) {
	c := newCluster(t)
	for id := range int64(20) {
		c.add(t, id+1, []string{"anna", "ben"}[id%2], nil)
	}
	got := errorsOf(c.execute(t, "anna", status.Operation{Verb: status.OpCancel, Users: []string{"anna"}}))
	if want := make([]string, 10); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for id := range int64(20) {
		if cancelled := c.stored(t, id+1).Cancel != nil; cancelled != (id%2 == 0) {
			t.Errorf("job %d is cancelled: %v", id+1, cancelled)
		}
	}
}

// TestMalformedOperations: an operation that makes no sense for any job fails as a
// whole.
func TestMalformedOperations(t *testing.T) {
	c := newCluster(t)
	for _, op := range []status.Operation{
		{Verb: "cancel"},
		{Verb: "explode", Jobs: []string{"1"}},
		{Verb: "signal", Jobs: []string{"1"}, Signal: 99},
		{Verb: "complete", Jobs: []string{"1"}, Status: 256},
		{Verb: "cancel", Jobs: make([]string, 100_001)},
	} {
		if out, err := c.service.Execute(t.Context(), c.service.Directory.Resolve("anna", nil), &op); err == nil {
			t.Errorf("%s of %d jobs: %+v", op.Verb, len(op.Jobs), out)
		}
	}
}

// TestTooLargeForThePartition: the error of an update is another one than that of a
// submission if the job is too large for its partition.
func TestTooLargeForThePartition(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", nil)
	const tooLarge = "Requested partition configuration not available now"
	for refused, want := range map[error]string{
		fmt.Errorf("no: %w", refusal.InvalidNodeCount): tooLarge,
		refusal.TooManyProcessors:                      tooLarge,
		errors.New("node count: invalid"):              "node count: invalid",
	} {
		c.service.Validate = func(*v1alpha1.BatchJob, bool) error { return refused }
		op := status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"NumNodes": "2"}}
		if got := c.operation(t, "anna", op); got.Error != want {
			t.Errorf("%v: %q, want %q", refused, got.Error, want)
		}
	}
}

// allocated returns how many bytes f allocates, with those of other goroutines
// meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestOnlyOwnersHaveValuesParsed updates a job of anna's with a value that takes
// long to parse.
func TestOnlyOwnersHaveValuesParsed(t *testing.T) {
	const limit = 1 << 20
	c := newCluster(t)
	c.add(t, 1, "anna", nil)
	terms := make([]string, 8_000)
	for i := range terms {
		terms[i] = fmt.Sprintf("afterany:%d", i+2)
	}
	dependency := strings.Join(terms, ",")
	for user, job := range map[string]string{"ben": "1", "stranger": "1", "anna": "2"} {
		set := map[string]string{"Dependency": dependency}
		op := status.Operation{Verb: status.OpUpdate, Jobs: []string{job}, Set: set}
		var got status.OperationStatus
		bytes := allocated(func() { got = c.operation(t, user, op) })
		if got.Error == "" || bytes > limit {
			t.Errorf("%s: %+v, %d bytes allocated", user, got, bytes)
		}
	}
	// A short value is checked first, as in scontrol, for every caller.
	op := status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"TimeLimit": "x"}}
	if got := c.operation(t, "ben", op); !strings.Contains(got.Error, "TimeLimit") {
		t.Errorf("a wrong value: %+v", got)
	}
}

// TestLongSettingsAreNotParsed: a dependency of 40,000 terms was parsed three times.
func TestLongSettingsAreNotParsed(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", nil)
	terms := strings.Repeat("afterok:1234,", 40_000) + "afterok:1"
	op := status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"Dependency": terms}}
	var err error
	got := allocated(func() {
		_, err = c.service.Execute(t.Context(), c.service.Directory.Resolve("anna", nil), &op)
	})
	if err == nil || err.Error() != bounds.TooLong {
		t.Errorf("refused with %v", err)
	}
	if got > 1<<20 {
		t.Errorf("%d KiB allocated", got>>10)
	}
}

// TestOperationsOfManyNamesAndFilters executes an operation that lists many jobs
// and many names that they must have: the filter is compiled once, not for each
// job.
func TestOperationsOfManyNamesAndFilters(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", nil)
	op := status.Operation{Verb: status.OpCancel}
	for i := range 30_000 {
		op.Jobs = append(op.Jobs, "2")
		op.Names = append(op.Names, fmt.Sprintf("name%d", i))
	}
	if got := allocated(func() { c.execute(t, "ben", op) }); got > 256<<20 {
		t.Errorf("%d MiB allocated", got>>20)
	}
}
