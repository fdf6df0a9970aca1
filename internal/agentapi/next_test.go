package agentapi_test

import (
	"net/http"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// waiting returns job 8 of anna, which is pending.
func waiting(change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Name, b.Namespace, b.UID = "j-8", "user-anna", "uid-8"
	b.Spec = v1alpha1.BatchJobSpec{JobID: 8, User: "anna", Partition: "main", Job: job.Job{Name: "next"}}
	for _, f := range change {
		f(b)
	}
	return b
}

// A pod whose job has ended waits for another one if a job is pending that could get an
// identical pod.
func TestPodIsKeptForAnotherJob(t *testing.T) {
	for name, tt := range map[string]struct {
		waits *v1alpha1.BatchJob
		nodes int
		ran   func(*v1alpha1.BatchJob)
		part  v1alpha1.PartitionSpec
		node  bool // keeps no pods
		r     wire.Report
		want  bool
	}{
		"no job waits": {},
		"one waits":    {waits: waiting(), want: true},
		"in one of its partitions": {waits: waiting(func(b *v1alpha1.BatchJob) {
			b.Spec.Partition, b.Spec.Job.Partitions = "a", []string{"a", "main"}
		}), want: true},
		"an array": {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "0-3"} }), want: true},
		"an array with no rest": {waits: waiting(func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Array, b.Status.Array = &job.Array{Spec: "0-3"}, &v1alpha1.ArrayStatus{}
		})},
		"another user's":            {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.User, b.Namespace = "ben", "user-ben" })},
		"in another partition":      {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Partition = "a" })},
		"it is held":                {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" })},
		"it is cancelled":           {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"} })},
		"it runs":                   {waits: waiting(func(b *v1alpha1.BatchJob) { b.Status.State = v1alpha1.StateRunning })},
		"with another image":        {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Container = map[string]string{"image": "x"} })},
		"as another group":          {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Group = &job.Group{GID: 5} })},
		"a shell of salloc":         {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Client = "salloc" })},
		"it is to run again":        {waits: waiting(), ran: func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 }},
		"after a shell":             {waits: waiting(), ran: func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Client = "salloc" }},
		"a heterogeneous one":       {waits: waiting(func(b *v1alpha1.BatchJob) { b.Spec.Job.Het = &job.Het{Size: 2} })},
		"several nodes":             {waits: waiting(), nodes: 2},
		"out of memory":             {waits: waiting(), r: wire.Report{OutOfMemory: true}},
		"after SIGTERM":             {waits: waiting(), r: wire.Report{Stopped: true}},
		"it did not start":          {waits: waiting(), r: wire.Report{Kind: wire.ReportFailed}},
		"the partition's choice":    {waits: waiting(), part: v1alpha1.PartitionSpec{PodPerJob: true}},
		"on a node that keeps none": {waits: waiting(), node: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			p := &v1alpha1.Partition{Spec: tt.part}
			p.Name = "main"
			fake.Feed(h.Cluster, p)
			h.ends, h.podPerJob = true, tt.node
			nodes := max(1, tt.nodes)
			h.place(t, 7, "anna", 1, nodes)
			h.helloAll(t, 7, "anna", 1, nodes)
			running, _ := h.Job(7)
			b := running.DeepCopy()
			b.Status.Partition = "main"
			if tt.ran != nil {
				tt.ran(b)
			}
			fake.Feed(h.Cluster, b)
			if tt.waits != nil {
				fake.Feed(h.Cluster, tt.waits)
			}
			r := tt.r
			r.JobID, r.Attempt = 7, 1
			if r.Kind == "" {
				r.Kind = wire.ReportEnded
			}
			var a wire.ReportAnswer
			if code, text := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, &a); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			if over, _ := h.Job(7); a.Next != tt.want || (over.Status.Pods != nil) != tt.want {
				t.Errorf("the agent got %v, the pods left: %+v", a.Next, over.Status.Pods)
			}
		})
	}
}

// A process that may not lead any more refuses no agent for good: the next leader may have
// a job for it.
func TestProcessWithoutLeaseRefusesNoAgentForGood(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	h.helloAll(t, 7, "anna", 1, 1)
	b, _ := h.Job(7)
	b = b.DeepCopy()
	b.Status.State = v1alpha1.StateCompleted
	fake.Feed(h.Cluster, b)
	ask := func() int {
		code, _ := h.post(t.Context(), wire.PathNext, token(7, "anna", 1, 0), wire.NextQuery{JobID: 7, Attempt: 1}, nil)
		return code
	}
	if code := ask(); code != http.StatusGone {
		t.Errorf("with the lease: %d", code)
	}
	h.leads = func() bool { return false }
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("without the lease: %d", code)
	}
	asked := false
	h.leads = func() bool { was := asked; asked = true; return !was } // it loses the lease meanwhile
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("when it has lost the lease: %d", code)
	}
}

// An agent that did not get the response to its report gets the job that was placed in its pod
// meanwhile when it reports again, and no job of another pod.
func TestReportIsRepeatedAfterLostResponse(t *testing.T) {
	h := newFixture(t)
	h.ends = true
	h.place(t, 7, "anna", 1, 1)
	h.helloAll(t, 7, "anna", 1, 1)
	b, _ := h.Job(7)
	b = b.DeepCopy()
	b.Status.Partition = "main"
	fake.Feed(h.Cluster, b, waiting())
	r := wire.Report{JobID: 7, Attempt: 1, Kind: wire.ReportEnded}
	if code, text := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, nil); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	next := waiting(func(n *v1alpha1.BatchJob) {
		n.Status = *b.Status.DeepCopy()
		n.Status.State, n.Status.Pods = v1alpha1.StateRunning, &v1alpha1.PodsOf{JobID: 7, Attempt: 1}
	})
	fake.Feed(h.Cluster, next)
	var a wire.ReportAnswer
	if code, text := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, &a); code != 200 || !a.Next {
		t.Errorf("%d %s", code, text)
	}
	h.place(t, 9, "anna", 1, 1)
	h.helloAll(t, 9, "anna", 1, 1)
	if code, _ := h.post(t.Context(), wire.PathReport, token(9, "anna", 1, 0), r, nil); code != 409 {
		t.Errorf("of another pod's job: %d", code)
	}
}
