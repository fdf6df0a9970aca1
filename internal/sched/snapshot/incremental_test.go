package snapshot

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// follower is a cluster whose jobs change, and an Incremental that follows them.
type follower struct {
	in           Input
	jobs         map[int64]*v1alpha1.BatchJob
	next         int64
	changed      map[int64]*v1alpha1.BatchJob
	incremental  *Incremental
	changedNodes map[string]*corev1.Node
}

func newFollower(t *rapid.T) *follower {
	f := &follower{
		in:           fullCluster(4, 0),
		jobs:         map[int64]*v1alpha1.BatchJob{},
		next:         100,
		changed:      map[int64]*v1alpha1.BatchJob{},
		changedNodes: map[string]*corev1.Node{},
	}
	f.in.Jobs, f.in.Pods = nil, nil
	if rapid.Bool().Draw(t, "accounts") {
		f.in.Policy.Accounts = []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: v1alpha1.AccountSpec{Limits: v1alpha1.Limits{GrpJobs: 3, GrpTRES: map[string]int64{"cpu": 9}}}}}
		f.in.Policy.QOS = []*v1alpha1.QOS{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "q"},
				Spec:       v1alpha1.QOSSpec{Limits: v1alpha1.Limits{MaxJobsPerUser: 2}},
			},
		}
	}
	f.in.Parameters.BackfillOrder = rapid.SampledFrom([]string{"", "shortest", "slowdown"}).Draw(t, "backfill order")
	if rapid.Bool().Draw(t, "preemption") {
		f.in.Parameters.PreemptType, f.in.Parameters.PreemptMode = "preempt/qos", "CANCEL"
		f.in.Policy.QOS = append(
			f.in.Policy.QOS,
			&v1alpha1.QOS{
				ObjectMeta: metav1.ObjectMeta{Name: "high"},
				Spec:       v1alpha1.QOSSpec{Preempt: []string{"", "q"}},
			},
		)
	}
	if rapid.Bool().Draw(t, "reservation") {
		r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
		r.Spec.Nodes, r.Spec.Duration, r.Spec.StartTime = "n1", 1, metav1.NewTime(f.in.Now.Add(20*time.Second))
		f.in.Reservations = append(f.in.Reservations, r)
	}
	f.replace(t)
	return f
}

func (f *follower) input() Input {
	f.in.Jobs = f.in.Jobs[:0:0]
	for _, b := range f.jobs {
		f.in.Jobs = append(f.in.Jobs, b)
	}
	return f.in
}

func (f *follower) pods(id int64) []*corev1.Pod { return nil }

// replace makes a new Incremental.
func (f *follower) replace(t *rapid.T) {
	ok := false
	if f.incremental, ok = NewIncremental(f.input(), f.pods); !ok {
		t.Fatal("the policy cannot be followed")
	}
}

// set stores b; it must not be changed afterwards.
func (f *follower) set(id int64, b *v1alpha1.BatchJob) {
	if f.changed[id] = b; b == nil {
		delete(f.jobs, id)
		return
	}
	f.jobs[id] = b
}

// pick returns a copy of one of the jobs for which is holds, or nil.
func (f *follower) pick(t *rapid.T, is func(*v1alpha1.BatchJob) bool) *v1alpha1.BatchJob {
	var ids []int64
	for id, b := range f.jobs {
		if is(b) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return f.jobs[rapid.SampledFrom(ids).Draw(t, "job")].DeepCopy()
}

// originOf returns the number of the array that b is a task of, or b's own.
func originOf(b *v1alpha1.BatchJob) int64 {
	if o := b.Spec.Origin; o != nil {
		return o.JobID
	}
	return b.Spec.JobID
}

func (f *follower) submit(t *rapid.T) {
	f.next++
	submit := metav1.NewMicroTime(f.in.Now)
	b := &v1alpha1.BatchJob{
		Spec: v1alpha1.BatchJobSpec{
			JobID:      f.next,
			SubmitTime: &submit,
			User:       rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "user"),
		},
	}
	j := &b.Spec.Job
	j.Name, j.Account, j.QOS = "j", rapid.SampledFrom([]string{"", "a"}).Draw(t, "account"), rapid.SampledFrom(
		[]string{"", "q", "high"},
	).Draw(t, "qos")
	j.Shape = job.Shape{
		MinNodes:    rapid.Int32Range(1, 3).Draw(t, "nodes"),
		CPUsPerTask: rapid.Int32Range(1, 4).Draw(t, "cpus"),
	}
	j.Shape.MaxNodes = j.Shape.MinNodes
	j.Time.Limit = rapid.Int32Range(1, 5).Draw(t, "limit")
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		j.Array = &job.Array{Spec: "0-3%2", Max: 2}
		j.Shape.MinNodes, j.Shape.MaxNodes = 1, 1
	case 1:
		if other := f.pick(t, func(*v1alpha1.BatchJob) bool { return true }); other != nil {
			j.Dependencies.Items = []job.Dependency{
				{
					Type: rapid.SampledFrom(
						[]string{"afterok", "afterany", "afternotok", "after", "aftercorr"},
					).Draw(t, "type"),
					JobID: originOf(other),
				},
			}
		}
	case 2:
		j.Hold = "user"
	case 3:
		j.Time.Begin = f.in.Now.Unix() + rapid.Int64Range(1, 30).Draw(t, "begin")
	case 4:
		j.Time.Limit, j.Time.Deadline = 0, f.in.Now.Unix()+rapid.Int64Range(60, 400).Draw(t, "deadline")
	case 5:
		j.Dependencies.Items = []job.Dependency{{Type: "singleton"}}
	}
	f.set(f.next, b)
}

// start makes the job of a decision, or a task of its array, run.
func (f *follower) start(a *Allocator, d backfill.Decision) {
	b := f.jobs[d.ID].DeepCopy()
	start := metav1.NewMicroTime(f.in.Now)
	if info := a.snapshot.Info(d.ID); len(info.Tasks()) > 0 {
		f.next++
		task := b.DeepCopy()
		task.Spec.JobID, task.Spec.Origin = f.next, &v1alpha1.Origin{JobID: d.ID}
		task.Spec.Job.Array = nil
		task.Spec.Task = &v1alpha1.ArrayTask{Index: info.Tasks()[0]}
		b = task
	}
	b.Status = v1alpha1.BatchJobStatus{
		State:      v1alpha1.StateRunning,
		StartTime:  &start,
		TimeLimit:  int32(max(1, d.Duration/60)),
		Allocation: a.Allocation(d),
	}
	f.set(b.Spec.JobID, b)
}

func (f *follower) change(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 6:
		by := f.pick(t, (*v1alpha1.BatchJob).AwaitsStart)
		if b := f.pick(t, (*v1alpha1.BatchJob).HoldsAllocation); b != nil && by != nil {
			b.Status.Preempt = &v1alpha1.Preemption{
				By:  by.Spec.JobID,
				Due: metav1.NewMicroTime(f.in.Now.Add(5 * time.Second)),
			}
			f.set(b.Spec.JobID, b)
		}
	case 0:
		if b := f.pick(t, (*v1alpha1.BatchJob).HoldsAllocation); b != nil {
			b.Status.State = v1alpha1.StateCompleting
			f.set(b.Spec.JobID, b)
		}
	case 1, 2:
		if b := f.pick(t, (*v1alpha1.BatchJob).HoldsAllocation); b != nil {
			end := metav1.NewMicroTime(f.in.Now)
			b.Status.State, b.Status.Allocation, b.Status.EndTime = rapid.SampledFrom(
				[]string{v1alpha1.StateCompleted, v1alpha1.StateFailed},
			).Draw(t, "state"), nil, &end
			f.set(b.Spec.JobID, b)
		}
	case 3:
		if b := f.pick(t, (*v1alpha1.BatchJob).AwaitsStart); b != nil {
			b.Spec.Job.Hold = rapid.SampledFrom([]string{"", "user"}).Draw(t, "hold")
			f.set(b.Spec.JobID, b)
		}
	case 4:
		if b := f.pick(t, func(b *v1alpha1.BatchJob) bool { return !b.HoldsAllocation() }); b != nil {
			f.set(b.Spec.JobID, nil)
		}
	default:
		if b := f.pick(t, (*v1alpha1.BatchJob).HoldsAllocation); b != nil { // requeued
			b.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StatePending}
			f.set(b.Spec.JobID, b)
		}
	}
}

// setPreemptors makes one pending job a preemptor, or none.
func (f *follower) setPreemptors(t *rapid.T) {
	f.in.Preemptors = maps.Clone(f.in.Preemptors)
	if b := f.pick(t, (*v1alpha1.BatchJob).AwaitsStart); b != nil && rapid.Bool().Draw(t, "chosen") {
		if f.in.Preemptors == nil {
			f.in.Preemptors = map[int64]bool{}
		}
		f.in.Preemptors[b.Spec.JobID] = true
	} else {
		clear(f.in.Preemptors)
	}
	f.incremental.SetPreemptors(f.in.Preemptors)
}

// checkVictims compares the victims of the pending jobs, if they may preempt every
// running job.
func (f *follower) checkVictims(t *rapid.T, s *Snapshot) {
	running := slices.Collect(s.RunningJobs())
	if got := slices.Collect(f.incremental.RunningJobs()); !slices.Equal(got, running) {
		t.Fatalf("running jobs %v, in a new snapshot %v", got, running)
	}
	candidates := func() []int64 { return slices.Clone(running) }
	for i := range s.Pending {
		id := s.Pending[i].ID
		if i > 0 && s.Pending[i-1].ID == id {
			continue
		}
		got, want := f.incremental.SelectVictims(id, candidates, nil), s.SelectVictims(id, candidates, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("job %d preempts\n%+v\nin a new snapshot\n%+v", id, got, want)
		}
	}
}

// changeNode makes a node unavailable, or available again.
func (f *follower) changeNode(t *rapid.T) {
	i := rapid.IntRange(0, len(f.in.Nodes)-1).Draw(t, "node")
	n := f.in.Nodes[i].DeepCopy()
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		n.Spec.Unschedulable = !n.Spec.Unschedulable
	case 1:
		ready := &n.Status.Conditions[0].Status
		*ready = map[corev1.ConditionStatus]corev1.ConditionStatus{corev1.ConditionTrue: corev1.ConditionUnknown}[*ready]
		if *ready == "" {
			*ready = corev1.ConditionTrue
		}
	default:
		n.Annotations = map[string]string{
			wire.AnnotationState: rapid.SampledFrom([]string{"drain", "down", ""}).Draw(t, "state"),
		}
	}
	f.in.Nodes = slices.Clone(f.in.Nodes)
	f.in.Nodes[i], f.changedNodes[n.Name] = n, n
}

// An Incremental makes the decisions of a new Snapshot, whatever happened to the
// jobs and nodes.
func TestIncrementalDecidesLikeANewSnapshot(t *testing.T) {
	followed := 0
	rapid.Check(t, func(t *rapid.T) {
		f := newFollower(t)
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				if rapid.Bool().Draw(t, "arrives") {
					f.submit(t)
				} else {
					f.change(t)
				}
			}
			f.in.Now = f.in.Now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "pass")) * time.Second)
			if rapid.IntRange(0, 3).Draw(t, "flip") == 0 {
				f.changeNode(t)
			}
			if rapid.IntRange(0, 3).Draw(t, "expects") == 0 {
				f.setPreemptors(t)
			}
			if !f.incremental.FollowNodes(f.changedNodes) {
				t.Fatal("a change of a node's availability is not followed")
			}
			if f.incremental.Follow(f.in.Now, f.changed) {
				followed++
			} else {
				f.replace(t)
			}
			clear(f.changed)
			clear(f.changedNodes)
			s := New(f.input())
			var want []backfill.Decision
			for _, d := range s.Plan().Decisions {
				if d.StartNow {
					want = append(want, d)
				}
			}
			got := slices.Clone(f.incremental.Decide())
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("starts\n%+v\nin a new snapshot\n%+v", got, want)
			}
			f.checkVictims(t, s)
			allocator := f.incremental.NewAllocator()
			for _, d := range got {
				info, want := f.incremental.Info(d.ID), s.Info(d.ID)
				if !reflect.DeepEqual(info, want) {
					t.Fatalf("job %d has\n%+v\nin a new snapshot\n%+v", d.ID, info, want)
				}
				if rapid.IntRange(0, 5).Draw(t, "fails") > 0 {
					f.start(allocator, d)
				}
				if len(info.Tasks()) > 0 {
					break // which task comes next depends on those that are split off
				}
			}
		}
	})
	if followed == 0 {
		t.Error("no change was followed")
	}
}

func TestFollowReportsWhatItCannotFollow(t *testing.T) {
	in := fullCluster(2, 3)
	for what, c := range map[string]func(*v1alpha1.BatchJob){
		"nothing":     nil,
		"a workload":  func(b *v1alpha1.BatchJob) { b.Spec.Workload = &v1alpha1.Workload{} },
		"a singleton": func(b *v1alpha1.BatchJob) { b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "singleton"}} },
	} {
		x, ok := NewIncremental(in, func(int64) []*corev1.Pod { return nil })
		if !ok {
			t.Fatal(what)
		}
		b := in.Jobs[len(in.Jobs)-1].DeepCopy()
		if c != nil {
			c(b)
		}
		if got := x.Follow(in.Now, map[int64]*v1alpha1.BatchJob{b.Spec.JobID: b}); got != (c == nil) {
			t.Errorf("%s: followed %v", what, got)
		}
	}
	for what, c := range map[string]func(*corev1.Node){
		"a label":       func(n *corev1.Node) { n.Labels = map[string]string{"x": "y"} },
		"fewer CPUs":    func(n *corev1.Node) { delete(n.Status.Allocatable, "cpu") },
		"an annotation": func(n *corev1.Node) { n.Annotations = map[string]string{wire.AnnotationWeight: "2"} },
		"another name":  func(n *corev1.Node) { n.Name = "n7" },
		"another node":  func(n *corev1.Node) { n.UID = "other" },
	} {
		x, _ := NewIncremental(in, nil)
		n := in.Nodes[0].DeepCopy()
		if c(n); x.FollowNodes(map[string]*corev1.Node{n.Name: n}) {
			t.Errorf("%s of a node is followed", what)
		}
	}
	x, _ := NewIncremental(in, func(int64) []*corev1.Pod { return in.Pods[:1] })
	b := in.Jobs[0].DeepCopy()
	b.Status.State, b.Status.Allocation = v1alpha1.StateCompleted, nil
	if x.Follow(in.Now, map[int64]*v1alpha1.BatchJob{b.Spec.JobID: b}) {
		t.Error("the end of a job was followed though its pod is still there")
	}
	if x, _ := NewIncremental(in, nil); x.Follow(in.Now.Add(maxAge*time.Second), nil) {
		t.Error("priorities and usage are never updated")
	}
}
