package keeper_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/keeper"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// world is a cluster in memory with the real planner, starter and keeper. The test
// acts as its users, nodes and agents.
type world struct {
	*testing.T
	*control.Cluster
	keep *keeper.Keeper

	mu        sync.Mutex
	created   map[string]bool // names of the JobSets that were created
	cancelled map[int64]bool  // jobs cancelled by their users
	requeues  map[int64]bool  // jobs that may be requeued
	lost      map[string]bool // nodes
	anyLost   bool            // some node was lost at some time
	serial    int64

	patchStatus func(ctx context.Context, o client.Object) // called before a status is written; nil: nothing is
}

const nodesOfWorld = 3

func newWorld(t *testing.T) *world {
	w := &world{T: t, created: map[string]bool{}, cancelled: map[int64]bool{}, requeues: map[int64]bool{}, lost: map[string]bool{}}
	w.Cluster = fake.Cluster(interceptor.Funcs{Delete: w.delete, Create: w.create, SubResourcePatch: w.writeStatus})
	start := starter.New(w.Cluster, w.build, time.Now)
	log := slog.New(slog.DiscardHandler)
	plan := planner.New(w.Cluster, start, time.Now, log)
	w.keep = keeper.New(keeper.Config{Cluster: w.Cluster, Starter: start, Now: time.Now, Log: log})
	plan.NeverRunnable = w.keep.Enqueue
	w.keep.PlanReason = func(id int64) string { p, _ := plan.Planned(id); return p.Reason }
	long := int32(1 << 30)
	fake.Feed(w.Cluster, fake.Settings(v1alpha1.ClusterSpec{MinJobAge: &long}),
		fake.Partition("debug", func(p *v1alpha1.PartitionSpec) { p.Default, p.Nodes = true, "ALL" }))
	for i := range nodesOfWorld {
		w.node(i, false)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { plan.Run(ctx) })
	wg.Go(func() { w.keep.Run(ctx, 4) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return w
}

func (w *world) build(b *v1alpha1.BatchJob) (*podgroup.PodGroup, *jobset.JobSet, error) {
	m := metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("j%d-%d", b.Spec.JobID, b.Status.Attempt),
		Labels: map[string]string{wire.LabelJobID: fmt.Sprint(b.Spec.JobID)}}
	return &podgroup.PodGroup{ObjectMeta: m}, &jobset.JobSet{ObjectMeta: *m.DeepCopy()}, nil
}

func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if b, ok := o.(*v1alpha1.BatchJob); ok && b.UID == "" { // as the API server does
		b.UID = types.UID("made-" + b.Name)
	}
	if s, ok := o.(*jobset.JobSet); ok {
		w.mu.Lock()
		w.created[s.Name] = true
		w.mu.Unlock()
	}
	return c.Create(ctx, o, opts...)
}

func (w *world) writeStatus(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if w.patchStatus != nil {
		w.patchStatus(ctx, o)
	}
	return c.SubResource(sub).Patch(ctx, o, patch, opts...)
}

// delete removes a job at once, and a pod at once if its node answers or by force.
func (w *world) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if b, ok := o.(*v1alpha1.BatchJob); ok { // its finalizer is removed at once
		w.Jobs.Remove(b, time.Now())
		return nil
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return c.Delete(ctx, o, opts...)
	}
	known, ok := w.Pods.ByUID(p.UID)
	if !ok {
		return nil
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	w.mu.Lock()
	stuck := w.lost[known.Spec.NodeName] && (options.GracePeriodSeconds == nil || *options.GracePeriodSeconds > 0)
	w.mu.Unlock()
	if !stuck {
		w.Pods.Remove(known, time.Now())
		return nil
	}
	known = known.DeepCopy()
	now := metav1.Now()
	known.DeletionTimestamp = &now
	fake.Feed(w.Cluster, known)
	return nil
}

func (w *world) node(i int, lost bool) {
	name := fmt.Sprintf("n%d", i+1)
	w.mu.Lock()
	w.lost[name], w.anyLost = lost, w.anyLost || lost
	w.mu.Unlock()
	ready := corev1.ConditionTrue
	if lost {
		ready = corev1.ConditionUnknown
	}
	fake.Feed(w.Cluster, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4000Mi")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}})
}

func (w *world) submit(nodes, cpus int32, requeue bool) {
	w.serial++
	submit := metav1.NewMicroTime(time.Now())
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-a", Name: fmt.Sprintf("j-%d", w.serial), UID: types.UID(fmt.Sprint(w.serial)),
		Finalizers: []string{wire.Finalizer}},
		Spec: v1alpha1.BatchJobSpec{JobID: w.serial, User: "a", Partition: "debug", SubmitTime: &submit, Job: job.Job{
			Shape: job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: cpus}, Time: job.Time{Limit: 600}, Batch: job.Batch{Requeue: &requeue}}}}
	if err := w.Client.Create(w.Context(), b); err != nil {
		w.Fatal(err)
	}
	w.requeues[w.serial] = requeue
	w.ApplyJob(b)
}

// some returns the nth of the jobs for which is is true; nil: there is none.
func (w *world) some(n int, is func(*v1alpha1.BatchJob) bool) *v1alpha1.BatchJob {
	jobs := slices.DeleteFunc(w.Jobs.List(), func(b *v1alpha1.BatchJob) bool { return !is(b) })
	if len(jobs) == 0 {
		return nil
	}
	slices.SortFunc(jobs, func(a, b *v1alpha1.BatchJob) int { return int(a.Spec.JobID - b.Spec.JobID) })
	return jobs[n%len(jobs)]
}

func (w *world) update(b *v1alpha1.BatchJob, change func(*v1alpha1.BatchJobSpec)) {
	n := b.DeepCopy()
	change(&n.Spec)
	if err := w.Client.Patch(w.Context(), n, client.MergeFrom(b)); err != nil {
		w.Fatal(err)
	}
	w.ApplyJob(n)
}

// serve does what JobSet's controllers, kubelets and agents do: placed jobs get pods on
// those of their nodes that answer, and run when all nodes have one.
func (w *world) serve() {
	for _, b := range w.Jobs.List() {
		attempt := b.Status.Attempt
		w.mu.Lock()
		created := w.created[fmt.Sprintf("j%d-%d", b.Spec.JobID, attempt)]
		w.mu.Unlock()
		if !created || b.Status.State != v1alpha1.StateConfiguring || b.Status.Allocation == nil {
			continue
		}
		var agents []wire.AgentInfo
		for i := range b.Status.Allocation.Nodes {
			node := b.Status.Allocation.Nodes[i].Node
			if w.lost[node] {
				continue
			}
			agents = append(agents, wire.AgentInfo{Address: node + ":1"})
			fake.Feed(w.Cluster, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("job-%d-%d-%d", b.Spec.JobID, attempt, i),
				Labels:      map[string]string{wire.LabelJobID: fmt.Sprint(b.Spec.JobID), wire.LabelAttempt: strconv.Itoa(int(attempt))},
				Annotations: map[string]string{wire.AnnotationNodeOffset: "0", batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)}},
				Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		}
		if len(agents) == len(b.Status.Allocation.Nodes) {
			_, _ = w.keep.GangReady(w.Context(), b.Spec.JobID, attempt, agents) // the job may not be placed any more
		}
	}
}

// finish ends the job's script with that exit code.
func (w *world) finish(b *v1alpha1.BatchJob, status int32) {
	for i := range b.Status.Allocation.Nodes {
		if w.lost[b.Status.Allocation.Nodes[i].Node] {
			return // no agent can report it
		}
	}
	_ = w.keep.Report(w.Context(), b.Spec.JobID, b.Status.Attempt, wire.Report{Kind: wire.ReportEnded, Status: status}) // the job may have ended meanwhile
	for _, p := range w.JobPods(b.Spec.JobID) {
		if p.Labels[wire.LabelAttempt] == strconv.Itoa(int(b.Status.Attempt)) {
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodSucceeded
			fake.Feed(w.Cluster, p)
		}
	}
}

// step is one event of the property test.
type step struct{ Kind, N, M int }

func (w *world) do(s step) {
	switch s.Kind {
	case 0, 1:
		w.submit(int32(1+s.N%2), int32(1+s.M%4), s.N%2 > 0)
	case 2:
		if b := w.some(s.N, func(b *v1alpha1.BatchJob) bool { return !b.IsFinal() }); b != nil {
			w.cancelled[b.Spec.JobID] = true
			w.update(b, func(s *v1alpha1.BatchJobSpec) { s.Cancel = &v1alpha1.CancelRequest{By: "a"} })
		}
	case 3:
		if b := w.some(s.N, func(b *v1alpha1.BatchJob) bool {
			return b.Status.State == v1alpha1.StateRunning && b.Spec.Cancel == nil
		}); b != nil {
			w.update(b, func(s *v1alpha1.BatchJobSpec) { s.Requeues++ })
		}
	case 4, 5:
		if b := w.some(s.N, func(b *v1alpha1.BatchJob) bool { return b.Status.State == v1alpha1.StateRunning }); b != nil {
			w.finish(b, int32(s.M%2))
		}
	case 6, 7:
		w.node(s.N%nodesOfWorld, s.M%2 == 0)
	default:
		time.Sleep(time.Duration(s.N) * time.Second)
	}
}

// settle runs the cluster until nothing is left to do.
func (w *world) settle() {
	for range 3 {
		time.Sleep(time.Second)
		synctest.Wait()
		w.serve()
	}
	synctest.Wait()
}

// overcommitted describes a node with a CPU that two jobs hold; "": there is none.
func (w *world) overcommitted() string {
	held := map[string]backfill.CPUSet{}
	for _, b := range w.Jobs.List() {
		if !b.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			a := &b.Status.Allocation.Nodes[i]
			cpus, err := backfill.ParseCPUSet(a.CPUIDs)
			all := held[a.Node].Clone()
			if err != nil || all.Intersects(cpus) {
				return fmt.Sprintf("job %d has CPUs %s of %s, of which others have some of %s", b.Spec.JobID, a.CPUIDs, a.Node, all)
			}
			all.Union(cpus)
			held[a.Node] = all
		}
	}
	return ""
}

// accounted describes what is wrong when every job should have ended; "": nothing is.
func (w *world) accounted() string {
	var wrong []string
	if n := len(w.Jobs.List()); n != int(w.serial) {
		wrong = append(wrong, fmt.Sprintf("%d of %d jobs are known", n, w.serial))
	}
	for _, b := range w.Jobs.List() {
		id, ok := b.Spec.JobID, false
		switch b.Status.State {
		case v1alpha1.StateCompleted, v1alpha1.StateFailed:
			ok = b.Status.Attempt > 0
		case v1alpha1.StateCancelled:
			ok = w.cancelled[id]
		case v1alpha1.StateNodeFail:
			ok = !w.requeues[id] && w.anyLost
		}
		if !ok {
			wrong = append(wrong, fmt.Sprintf("job %d is %q (%s %s)", id, b.Status.State, b.Status.Reason, b.Status.Message))
		}
	}
	for _, p := range w.Pods.List() {
		if !snapshot.IsTerminated(p) {
			wrong = append(wrong, fmt.Sprintf("pod %s is left, deleted %v", p.Name, p.DeletionTimestamp != nil))
		}
	}
	return strings.Join(wrong, "; ")
}

// play does the steps, then brings the nodes back and waits until every job has ended.
func (w *world) play(steps []step) string {
	w.settle()
	for _, s := range steps {
		w.do(s)
		w.settle()
		if why := w.overcommitted(); why != "" {
			return why
		}
	}
	for i := range nodesOfWorld {
		w.node(i, false)
	}
	why := ""
	for range 40 {
		w.settle()
		for _, b := range w.Jobs.List() {
			if b.Status.State == v1alpha1.StateRunning {
				w.finish(b, 0)
			}
		}
		time.Sleep(20 * time.Second)
		if why = w.overcommitted(); why != "" {
			return why
		}
		if why = w.accounted(); why == "" {
			return ""
		}
	}
	return why
}

// For any changes of jobs and nodes: no CPU is allocated to two jobs, and every
// accepted job runs to its end or is accounted for, in the right state, with nothing
// left behind.
func TestEveryJobIsAccountedFor(t *testing.T) {
	ended := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{rapid.IntRange(0, 9).Draw(r, "kind"), rapid.IntRange(0, 30).Draw(r, "n"), rapid.IntRange(0, 30).Draw(r, "m")}
		}), 1, 25).Draw(r, "steps")
		why := ""
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			why = w.play(steps)
			for _, b := range w.Jobs.List() {
				ended[b.Status.State]++
				if b.Status.Attempt > 1 {
					ended["requeued"]++
				}
			}
		})
		if why != "" {
			r.Fatal(why)
		}
	})
	t.Logf("jobs by state: %v", ended)
	for _, state := range []string{v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateCancelled, "requeued"} {
		if ended[state] == 0 {
			t.Errorf("no job was ever %s", state)
		}
	}
}
