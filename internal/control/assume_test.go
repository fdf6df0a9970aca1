package control

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

var t0 = time.Unix(1000, 0)

// singlePod returns the job of one pod, as an object with that resource version.
func singlePod(rv int) *v1alpha1.BatchJob {
	b := version("a", 1, rv)
	b.Namespace, b.Name = "ml", "w"
	b.Spec.Workload = &v1alpha1.Workload{Pods: []v1alpha1.WorkloadPod{{UID: "p"}}}
	return b
}

// assumedJob adds the job of a single pod that has no object yet.
func assumedJob(s *JobStore, id int64) *v1alpha1.BatchJob {
	b := singlePod(0)
	b.Spec.JobID = id
	s.AssumeJob(b)
	return b
}

// setState returns a change of a status to that state, of the first attempt.
func setState(state string) func(*v1alpha1.BatchJobStatus) {
	return func(st *v1alpha1.BatchJobStatus) { st.State, st.Attempt = state, 1 }
}

func assumeStatus(t *testing.T, s *JobStore, b *v1alpha1.BatchJob, state string) *v1alpha1.BatchJob {
	t.Helper()
	n, ok := s.AssumeStatus(b, t0, setState(state))
	if !ok {
		t.Fatalf("the status %s of job %d cannot be assumed", state, b.Spec.JobID)
	}
	return n
}

// An assumed status stays while newer versions of the object have none, and ends
// with the first that has one.
func TestAssumedStatusStaysUntilTheObjectHasOne(t *testing.T) {
	s := NewJobs()
	first := singlePod(5)
	s.Apply(first)
	if s.IsAssumed(first) || !s.MayAssumeStatus(first) {
		t.Fatal("the status of a single pending pod may not be assumed, or already is")
	}
	placed := assumeStatus(t, s, first, v1alpha1.StateConfiguring)
	if _, ok := s.AssumeStatus(first, t0, setState(v1alpha1.StateRunning)); ok {
		t.Fatal("a version that was replaced got a status")
	}
	if len(placed.Status.History) != 1 || first.Status.State != "" {
		t.Errorf("history %v; the version before is %q", placed.Status.History, first.Status.State)
	}
	s.Apply(singlePod(5))
	cancelled := singlePod(6)
	cancelled.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"}
	s.Apply(cancelled)
	b, _ := s.Get("1")
	if b.Status.State != v1alpha1.StateConfiguring || !s.IsAssumed(b) || b.Spec.Cancel == nil || b.ResourceVersion != "6" {
		t.Errorf("%+v", b)
	}
	if cancelled.Status.State != "" {
		t.Error("an object of the watch was changed")
	}
	written := singlePod(7)
	written.Status.State = v1alpha1.StateCompleted
	s.Apply(written)
	if b, _ := s.Get("1"); b.Status.State != v1alpha1.StateCompleted || s.IsAssumed(b) {
		t.Errorf("%+v", b.Status)
	}
}

func TestStatusIsAssumedOnlyOfSinglePodsWithoutOne(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"a submitted job":         func(b *v1alpha1.BatchJob) { b.Spec.Workload = nil },
		"a group":                 func(b *v1alpha1.BatchJob) { b.Spec.Workload.Group = "group ml/g" },
		"two pods":                func(b *v1alpha1.BatchJob) { b.Spec.Workload.Pods = make([]v1alpha1.WorkloadPod, 2) },
		"a job that was requeued": func(b *v1alpha1.BatchJob) { b.Status.State = v1alpha1.StatePending },
		"a job that has run":      func(b *v1alpha1.BatchJob) { b.Status.Restarts = 1 },
	} {
		s, b := NewJobs(), singlePod(1)
		change(b)
		s.Apply(b)
		if s.MayAssumeStatus(b) {
			t.Errorf("the status of %s may be assumed", name)
		}
	}
}

// The object replaces the job that was assumed before it, whose status stays.
func TestObjectReplacesAssumedJob(t *testing.T) {
	s := NewJobs()
	var last [2]*v1alpha1.BatchJob
	s.Subscribe(func(old, now *v1alpha1.BatchJob) { last = [2]*v1alpha1.BatchJob{old, now} })
	first := assumedJob(s, 1)
	if IsCreated(first) || !s.IsAssumed(first) || !s.MayAssumeStatus(first) {
		t.Fatalf("%+v", first)
	}
	placed := assumeStatus(t, s, first, v1alpha1.StateRunning)
	s.Apply(singlePod(7))
	b, _ := s.Get("1")
	if b.UID != "a" || b.Status.State != v1alpha1.StateRunning || !s.IsAssumed(b) {
		t.Errorf("%+v", b)
	}
	if s.Len() != 1 || last[0] != placed || last[1] != b {
		t.Errorf("%d jobs, notified of %v", s.Len(), last)
	}
	if _, ok := s.AssumeStatus(placed, t0, setState(v1alpha1.StateCompleted)); ok {
		t.Error("a status was assumed for a version that the object has replaced")
	}
}

// An object that an earlier process has created replaces the assumed job, with its own id.
func TestObjectWithAnotherIDReplacesAssumedJob(t *testing.T) {
	s := NewJobs()
	removed := false
	s.Subscribe(func(old, now *v1alpha1.BatchJob) { removed = removed || now == nil && old.Spec.JobID == 2 })
	assumeStatus(t, s, assumedJob(s, 2), v1alpha1.StateRunning)
	s.Apply(singlePod(7))
	if _, known := s.Get("2"); known || !removed {
		t.Error("the job with the old id still exists")
	}
	if b, _ := s.Get("1"); b == nil || b.Status.State != "" || s.IsAssumed(b) {
		t.Errorf("%+v", b)
	}
}

// A job whose object was created with a status has it until the object has a status of
// its own. A status that was assumed later takes precedence.
func TestInitialStatusCountsUntilTheObjectHasOne(t *testing.T) {
	s := NewJobs()
	object := func(rv int) *v1alpha1.BatchJob {
		b := singlePod(rv)
		if err := b.SetInitialStatus(&v1alpha1.BatchJobStatus{State: v1alpha1.StateConfiguring}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	s.Apply(object(5))
	b, _ := s.Get("1")
	if b.Status.State != v1alpha1.StateConfiguring || !s.IsAssumed(b) || b.HasStatus() && b.InitialStatus() != nil {
		t.Errorf("%+v", b)
	}
	assumeStatus(t, s, b, v1alpha1.StateRunning)
	s.Apply(object(6))
	if b, _ = s.Get("1"); b.Status.State != v1alpha1.StateRunning || !s.IsAssumed(b) {
		t.Errorf("%+v", b.Status)
	}
	written := object(7)
	written.Status.State = v1alpha1.StateCompleted
	s.Apply(written)
	if b, _ = s.Get("1"); b.Status.State != v1alpha1.StateCompleted || s.IsAssumed(b) {
		t.Errorf("%+v", b.Status)
	}
}

// An object created with a status, from a job that was assumed, has that status: it
// is newer than the one in memory.
func TestInitialStatusOfANewObjectIsNewer(t *testing.T) {
	s := NewJobs()
	assumeStatus(t, s, assumedJob(s, 1), v1alpha1.StateConfiguring)
	object := singlePod(7)
	if err := object.SetInitialStatus(&v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning}); err != nil {
		t.Fatal(err)
	}
	s.Apply(object)
	if b, _ := s.Get("1"); b.Status.State != v1alpha1.StateRunning || !s.IsAssumed(b) {
		t.Errorf("%+v", b.Status)
	}
}

func TestBulkCancelEndsPendingJobs(t *testing.T) {
	at := metav1.NewMicroTime(t0)
	request := &v1alpha1.CancelRequest{By: "anna", At: &at}
	requested := false
	s := NewJobs()
	s.BulkCancel = func(*v1alpha1.BatchJob) *v1alpha1.CancelRequest {
		if requested {
			return request
		}
		return nil
	}
	pending, placed, requeued := version("a", 1, 5), version("b", 2, 5), version("c", 3, 5)
	placed.Status.State = v1alpha1.StateConfiguring
	requeued.Spec.Requeues = 1
	for _, b := range []*v1alpha1.BatchJob{pending, placed, requeued} {
		s.Apply(b)
	}
	requested = true
	for _, b := range []*v1alpha1.BatchJob{pending, placed, requeued} {
		s.AssumeCancelled(b.UID)
	}
	s.AssumeCancelled("unknown")
	for id, want := range map[string]struct {
		state              string
		cancelled, assumed bool
	}{
		"1": {v1alpha1.StateCancelled, true, true},
		"2": {v1alpha1.StateConfiguring, true, false}, // the keeper ends it
		"3": {"", false, false},                       // the requeue was requested later
	} {
		b, _ := s.Get(id)
		if b.Status.State != want.state || (b.Spec.Cancel == request) != want.cancelled || s.IsAssumed(b) != want.assumed {
			t.Errorf("job %s: %q, cancel %v, assumed %v", id, b.Status.State, b.Spec.Cancel, s.IsAssumed(b))
		}
	}
	if b, _ := s.Get("1"); b.Status.EndTime != &at || len(b.Status.History) != 1 || pending.Spec.Cancel != nil {
		t.Errorf("%+v; the object: %+v", b.Status, pending.Spec.Cancel)
	}
}

func TestRemovedJobIsNotAssumed(t *testing.T) {
	s := NewJobs()
	b := assumedJob(s, 1)
	s.Remove(b, t0)
	if s.Len() != 0 || s.IsAssumed(b) {
		t.Error("the job was not removed")
	}
	s.AssumeJob(singlePod(0))
	if s.Len() != 0 {
		t.Error("a job that was removed is assumed again")
	}
}

// Script and environment are not in memory, but their size is, until the job is
// removed.
func TestStoredBytesCountTheDroppedPayload(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	b := version("a", 1, 5)
	b.Spec.Script, b.Spec.Environment = make([]byte, 100), make([]byte, 20)
	want := b.StoredBytes()
	c.ApplyJob(b)
	known, _ := c.Job(1)
	if known.Spec.Script != nil || c.Jobs.StoredBytes(known) != want {
		t.Errorf("%d bytes of script in memory; %d bytes stored, want %d", len(known.Spec.Script), c.Jobs.StoredBytes(known), want)
	}
	changed := known.DeepCopy()
	changed.ResourceVersion = "6"
	c.ApplyJob(changed)
	if known, _ = c.Job(1); known.ResourceVersion != "6" || c.Jobs.StoredBytes(known) != want {
		t.Errorf("after a change: version %s, %d bytes", known.ResourceVersion, c.Jobs.StoredBytes(known))
	}
	c.Jobs.Remove(known, t0)
	if c.ApplyJob(b); len(c.Jobs.payload) != 0 {
		t.Errorf("after its deletion: %v", c.Jobs.payload)
	}
}
