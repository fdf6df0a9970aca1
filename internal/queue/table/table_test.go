package table_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// plans is a Planner.
type plans map[int64]control.Planned

func (p plans) Planned(id int64) (control.Planned, bool) { x, ok := p[id]; return x, ok }

// TestNodesThatTheTasksFill compares with what Slurm 22.05.8 shows for held jobs on
// nodes of four CPUs: squeue -o '%D %C', and the range of scontrol show job.
func TestNodesThatTheTasksFill(t *testing.T) {
	for _, c := range []struct {
		shape            job.Shape
		nodes, cpus, max int32
	}{
		{job.Shape{Tasks: 9}, 3, 9, 0},
		{job.Shape{MinNodes: 2, MaxNodes: 3, Tasks: 9}, 3, 9, 3},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 9}, 3, 9, 2},
		{job.Shape{MinNodes: 1, MaxNodes: 8, Tasks: 9}, 3, 9, 8},
		{job.Shape{MinNodes: 1, MaxNodes: 4, Tasks: 2}, 1, 2, 2},
		{job.Shape{MinNodes: 2, MaxNodes: 3}, 2, 1, 3},
		{job.Shape{MinNodes: 2, MaxNodes: 3, CPUsPerTask: 2}, 2, 2, 3},
		{job.Shape{MinNodes: 2, MaxNodes: 3, TasksPerNode: 2}, 2, 4, 3},
		{job.Shape{MinNodes: 3, MaxNodes: 3}, 3, 3, 3},
		{job.Shape{Tasks: 9, TasksPerNode: 2}, 4, 9, 0},
		{job.Shape{Tasks: 5, TasksPerNode: 4}, 1, 5, 0},
		{job.Shape{Tasks: 5, CPUsPerTask: 2}, 3, 10, 0},
		{job.Shape{Tasks: 5, CPUsPerTask: 3}, 5, 15, 0},
		{job.Shape{MinNodes: 2, MaxNodes: 4, Tasks: 5, CPUsPerTask: 2}, 3, 10, 4},
		{job.Shape{MinNodes: 3, MaxNodes: 3, Tasks: 10}, 3, 10, 3},
	} {
		cluster, tab := newTable(plans{1: {NodeCPUs: 4}})
		fake.Feed(cluster, batchJob(1, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape, b.Spec.Job.Hold = c.shape, "user" }))
		j := tab.Merged(tab.Select(t.Context(), table.Query{})[0])
		if j.Nodes != c.nodes || j.CPUs != c.cpus || j.MaxNodes != c.max || j.Reason != "JobHeldUser" {
			t.Errorf("%+v: %d nodes, at most %d, %d CPUs, %s; want %d, %d, %d", c.shape, j.Nodes, j.MaxNodes, j.CPUs, j.Reason, c.nodes, c.max, c.cpus)
		}
	}
}

func newTable(p table.Planner) (*control.Cluster, *table.Table) {
	c := fake.Cluster(interceptor.Funcs{})
	return c, table.New(c, directory.New(c, nil), p)
}

var submitted = metav1.NewMicroTime(time.Unix(1_700_000_000, 0))

func batchJob(id int64, user string, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Name, b.Namespace = fmt.Sprintf("j-%d", id), "user-"+user
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main", SubmitTime: &submitted}
	b.Spec.Job = job.Job{Name: fmt.Sprintf("job \"%d\" é\n", id), Shape: job.Shape{MinNodes: 2, TasksPerNode: 3}, Batch: job.Batch{WorkDir: "/w"}}
	if change != nil {
		change(b)
	}
	return b
}

func numbers(rows []*table.Row) []int64 {
	out := []int64{}
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

func TestSelect(t *testing.T) {
	c, tab := newTable(nil)
	state := func(s string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			b.Status.State = s
			if s == v1alpha1.StateRunning {
				b.Status.Partition, b.Status.Allocation = "fast", &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2}, {Name: "n2", CPUs: 2}}}
			}
		}
	}
	fake.Feed(c, fake.User("anna", 1001), batchJob(5, "ben", nil), batchJob(3, "anna", state(v1alpha1.StateRunning)),
		batchJob(4, "anna", state(v1alpha1.StateCompleted)), batchJob(1, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Partitions = []string{"main", "slow"} }))
	for name, x := range map[string]struct {
		q    table.Query
		want []int64
	}{
		"default":    {table.Query{}, []int64{1, 3, 5}},
		"all":        {table.Query{AllStates: true}, []int64{1, 3, 4, 5}},
		"user":       {table.Query{Users: []string{"anna"}}, []int64{1, 3}},
		"ids":        {table.Query{IDs: []int64{5, 4, 5, 77, -1}}, []int64{5}},
		"state":      {table.Query{States: []string{"COMPLETED", "RUNNING"}}, []int64{3, 4}},
		"partition":  {table.Query{Partitions: []string{"slow", "fast"}}, []int64{1, 3}},
		"node":       {table.Query{Nodes: pattern(t, "n2", "n7")}, []int64{3}},
		"name":       {table.Query{Names: []string{"job \"5\" é\n"}}, []int64{5}},
		"component":  {table.Query{IDs: []int64{3, 5}, Leaders: map[int64][]int64{5: {4}}}, []int64{3}}, // 5 is not a component of 4
		"qos":        {table.Query{QOS: []string{"normal"}}, []int64{1, 3, 5}},                          // which is what no QOS means
		"no account": {table.Query{Accounts: []string{"x"}}, []int64{}},
	} {
		if got := numbers(tab.Select(t.Context(), x.q)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
	if r := tab.Get(3); r.UID != 1001 || r.NodeList != "n[1-2]" || r.BatchHost != "n1" || r.CPUs != 4 || r.Group != "anna" {
		t.Errorf("%+v", r.Job)
	}
	if r := tab.Get(5); r.Nodes != 2 || r.Tasks != 6 || r.CPUs != 6 || r.TimeLimit != job.Unlimited || r.StdOut != "/w/slurm-5.out" || r.Reason != "None" {
		t.Errorf("%+v", r.Job)
	}
	if a, all := tab.Active(table.Key{User: "anna"}), tab.Len(); a != 2 || all != 4 || tab.Highest() != 5 {
		t.Errorf("%d active, %d in all", a, all)
	}
}

// The rows are encoded as encoding/json would encode them, completely and with selected
// fields.
func TestEncoding(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	c, tab := newTable(plans{1: {Start: start, Nodes: []string{"n2", "n1"}, Reason: "Priority", Priority: 9}, 2: {Reason: "Resources", Priority: 4}})
	fake.Feed(c, batchJob(1, "anna", nil), batchJob(2, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }), batchJob(3, "anna", nil))
	rows := tab.Select(t.Context(), table.Query{})
	var got, want []status.Job
	if err := json.Unmarshal(tab.AppendJSON(nil, rows, nil), &got); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		want = append(want, tab.Merged(r))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got[0].Reason != "Priority" || got[0].Priority != 9 || got[0].Start != start.Unix() || got[0].PlannedNodes == "" {
		t.Errorf("planned: %+v", got[0])
	}
	if got[1].Reason != "JobHeldUser" || got[1].Priority != 0 {
		t.Errorf("held: %+v", got[1])
	}
	if text := string(tab.AppendJSON(nil, rows[:1], table.Project([]string{"id", "state", "nope"}))); text != `[{"id":1,"state":"PENDING"}]` {
		t.Error(text)
	}
	for f := range reflect.TypeFor[status.Job]().Fields() {
		if k := f.Type.Kind(); k != reflect.String && k != reflect.Bool && k != reflect.Int32 && k != reflect.Int64 {
			t.Errorf("status.Job.%s: the encoder knows no %s", f.Name, k)
		}
	}
}

// For any order of events, the table is in the end equal to the store, and sorted.
func TestFollowsTheStore(t *testing.T) {
	c, tab := newTable(nil)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range 500 {
				id := int64(r.IntN(100)) + 1
				if old, ok := c.Job(id); ok && r.IntN(5) == 0 {
					c.Jobs.Remove(old, time.Now())
					continue
				}
				b := batchJob(id, "anna", nil)
				b.UID = ""
				fake.Feed(c, b)
				tab.Select(t.Context(), table.Query{Users: []string{"anna"}})
			}
		})
	}
	wg.Wait()
	ids := numbers(tab.Select(t.Context(), table.Query{AllStates: true}))
	if !slices.IsSorted(ids) || len(ids) != c.Jobs.Len() || tab.Active(table.Key{User: "anna"}) != len(ids) {
		t.Errorf("%d rows of %d jobs", len(ids), c.Jobs.Len())
	}
}

// A user that is added after the user's jobs appears in their rows.
func TestLateUser(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", nil), fake.User("anna", 1001))
	if r := tab.Select(t.Context(), table.Query{})[0]; r.UID != 1001 || !strings.Contains(string(tab.AppendJSON(nil, []*table.Row{r}, nil)), `"uid":1001`) {
		t.Errorf("%+v", r.Job)
	}
}

func BenchmarkSqueue10000(b *testing.B) {
	p := plans{}
	c, tab := newTable(p)
	for id := range int64(10000) {
		p[id+1] = control.Planned{Reason: "Priority", Priority: id, Start: time.Unix(1_800_000_000+id, 0), Nodes: []string{"n1", "n2"}}
		fake.Feed(c, batchJob(id+1, "anna", nil))
	}
	for name, fields := range map[string][]string{"all": nil, "default": {"id", "partition", "name", "user", "state", "start", "end", "nodes", "nodeList", "reason"}} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				buf = tab.AppendJSON(buf[:0], tab.Select(context.Background(), table.Query{}), table.Project(fields))
			}
			b.ReportMetric(float64(len(buf)), "bytes")
		})
	}
}

// A client that has just submitted a job finds it, although its event is still on the
// way. Other queries do not wait.
func TestAwait(t *testing.T) {
	c, tab := newTable(nil)
	tab.Expect(7, 0, "anna")
	others := func(q table.Query) {
		done := make(chan struct{})
		go func() { tab.Await(t.Context(), q); close(done) }()
		select {
		case <-done:
		case <-time.After(table.Patience * 9 / 10):
			t.Errorf("%+v waits for another's job", q)
		}
	}
	others(table.Query{Users: []string{"ben"}})
	others(table.Query{IDs: []int64{6}})
	fake.Feed(c, batchJob(7, "anna", nil))
	for i, q := range []table.Query{{}, {IDs: []int64{21}}, {Users: []string{"anna"}}} {
		id := int64(20 + i)
		tab.Expect(id, 0, "anna")
		time.AfterFunc(20*time.Millisecond, func() { fake.Feed(c, batchJob(id, "anna", nil)) })
		tab.Await(t.Context(), q)
		if tab.Get(id) == nil {
			t.Errorf("%+v: a job that was admitted is not listed", q)
		}
	}
	tab.Expect(30, 1, "anna")
	fake.Feed(c, batchJob(30, "anna", nil))
	time.AfterFunc(20*time.Millisecond, func() { fake.Feed(c, batchJob(31, "anna", nil)) })
	if tab.Await(t.Context(), table.Query{IDs: []int64{30}}); tab.Get(31) == nil {
		t.Error("a component that was admitted with its job is not listed")
	}
	tab.Expect(8, 0, "anna") // never stored
	start := time.Now()
	if tab.Await(t.Context(), table.Query{}); time.Since(start) > 10*table.Patience {
		t.Error("waits for ever for a job that was never stored")
	}
}

// An allocation of srun or salloc has no batch script.
func TestAllocationsHaveNoBatchScript(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", nil), batchJob(2, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Client = "salloc" }))
	if tab.Get(1).NoBatch || !tab.Get(2).NoBatch {
		t.Errorf("batch job: NoBatch %v, salloc: %v", tab.Get(1).NoBatch, tab.Get(2).NoBatch)
	}
}

// TestDependencyThatIsOver: dependencies that a job no longer waits for are not shown,
// those that can never be met are shown as such, and unknown ones are not guessed.
func TestDependencyThatIsOver(t *testing.T) {
	for _, c := range []struct {
		kinds                  []string
		reason, outcomes, want string
		any                    bool
	}{
		{[]string{"afterok"}, "Dependency", "u", "afterok:7(unfulfilled)", false},
		{[]string{"afterok"}, "JobHeldUser", "", "afterok:7(unfulfilled)", false},
		{[]string{"afterok"}, "Priority", "", "", false},
		{[]string{"afterok", "afterany"}, "Resources", "", "", false},
		{[]string{"afterok"}, "DependencyNeverSatisfied", "n", "afterok:7(failed)", false},
		{[]string{"afterok", "afterany"}, "DependencyNeverSatisfied", "nu", "afterok:7(failed),afterany:7(unfulfilled)", false},
		{[]string{"afterok", "afterany"}, "DependencyNeverSatisfied", "", "afterok:7(unfulfilled),afterany:7(unfulfilled)", false},
		{[]string{"afterok", "afterany"}, "Dependency", "mu", "afterany:7(unfulfilled)", false},
		{[]string{"afterok", "afterok"}, "Dependency", "nu", "afterok:7(failed)?afterok:7(unfulfilled)", true},
		{[]string{"aftercorr"}, "Resources", "", "aftercorr:7(unfulfilled)", false},
		{[]string{"aftercorr"}, "DependencyNeverSatisfied", "n", "aftercorr:7(failed)", false},
	} {
		cluster, tab := newTable(plans{1: {Reason: c.reason, Outcomes: c.outcomes}})
		fake.Feed(cluster, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Any = c.any
			for _, kind := range c.kinds {
				b.Spec.Job.Dependencies.Items = append(b.Spec.Job.Dependencies.Items, job.Dependency{Type: kind, JobID: 7})
			}
		}))
		rows := tab.Select(t.Context(), table.Query{})
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		if have := tab.Merged(rows[0]).Dependency; have != c.want {
			t.Errorf("%q with reason %s: %q, want %q", c.kinds, c.reason, have, c.want)
		}
	}
}

// TestNodesOfPendingJobs compares with what squeue -o '%D %C' of Slurm 22.05.8 shows
// for held jobs, and the nodes that they request.
func TestNodesOfPendingJobs(t *testing.T) {
	for _, c := range []struct {
		shape       job.Shape
		nodes, cpus int32
		tres        string
	}{
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 3, CPUsPerTask: 2}, 3, 6, "node=2"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 4, CPUsPerTask: 2}, 2, 8, "node=2"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 5, CPUsPerTask: 2}, 3, 10, "node=2"},
		{job.Shape{MinNodes: 4, MaxNodes: 4, Tasks: 5, CPUsPerTask: 2}, 5, 10, "node=4"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 3, CPUsPerTask: 3}, 3, 9, "node=2"},
		{job.Shape{MinNodes: 1, MaxNodes: 1, Tasks: 2, CPUsPerTask: 2}, 1, 4, "node=1"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 3}, 2, 3, "node=2"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, CPUsPerTask: 2}, 2, 4, "node=2"},
		{job.Shape{MinNodes: 2, MaxNodes: 2, Tasks: 3, CPUsPerTask: 2, TasksPerNode: 2}, 2, 6, "node=2"},
	} {
		cluster, tab := newTable(nil)
		fake.Feed(cluster, batchJob(1, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape = c.shape }))
		r := tab.Select(t.Context(), table.Query{})[0]
		if r.Nodes != c.nodes || r.CPUs != c.cpus || !strings.Contains(r.TRES, c.tres) {
			t.Errorf("%+v: %d nodes, %d CPUs, %s; want %d, %d, %s", c.shape, r.Nodes, r.CPUs, r.TRES, c.nodes, c.cpus, c.tres)
		}
	}
}

// Rows of jobs that are or were held: running jobs are shown as running, a requeued job
// that is held keeps its exit code, and a job with a failed dependency keeps that
// reason.
func TestHeldInOtherStates(t *testing.T) {
	cluster, tab := newTable(plans{})
	begun := metav1.NewMicroTime(time.Unix(1_800_000_000, 0))
	fake.Feed(cluster,
		batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Hold, b.Status.State, b.Status.StartTime, b.Status.Priority = "admin", v1alpha1.StateRunning, &begun, 7
		}),
		batchJob(2, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold, b.Status.State = "user", v1alpha1.StateCancelled }),
		batchJob(3, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Hold, b.Status.State = job.HoldRequeue, v1alpha1.StatePending
			b.Status.Past = []v1alpha1.PastAttempt{{State: v1alpha1.StateFailed, ExitCode: &v1alpha1.ExitCode{Status: 3}}}
		}),
		batchJob(4, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 2}}
			b.Status.State, b.Status.Reason = v1alpha1.StateCancelled, "DependencyNeverSatisfied"
		}),
		batchJob(5, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = job.HoldDeleted + "lab" }),
		batchJob(6, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = job.HoldSpecial }))
	for i, want := range []string{"RUNNING JobHeldAdmin 0 0 ", "CANCELLED JobHeldUser 0 0 ", "PENDING job requeued in held state 0 3 ",
		"CANCELLED DependencyNeverSatisfied 0 0 afterok:2(failed)", "RESV_DEL_HOLD Reservation lab was deleted 0 0 ",
		"SPECIAL_EXIT job requeued in held state 0 0 "} {
		j := tab.Merged(tab.Select(t.Context(), table.Query{IDs: []int64{int64(i) + 1}, AllStates: true})[0])
		if got := fmt.Sprint(j.State, " ", j.Reason, " ", j.Priority, " ", j.ExitCode, " ", j.Dependency); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func pattern(t *testing.T, texts ...string) *hostlist.Pattern {
	t.Helper()
	p, err := hostlist.ParsePattern(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
