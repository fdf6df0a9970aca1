// Package keeper manages the life cycle of jobs. From a job and its pods, package decide
// derives the next action (time limits, cancellation, requeueing, lost nodes, clean-up),
// and this package carries it out. Actions are idempotent, and all state that must survive
// is in the objects, so the process may end at any time.
package keeper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/dependency"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// ErrNotCurrent is returned for reports about an attempt that is over.
var ErrNotCurrent = errors.New("this attempt of the job is over")

// Commander sends a command to the batch host of a job's attempt.
type Commander interface {
	Send(jobID int64, attempt int32, c wire.Command)
}

// Config has the dependencies and parameters of a Keeper. Without a Commander, jobs are
// ended by deleting their pods.
type Config struct {
	Cluster   *control.Cluster
	Starter   *starter.Starter
	Commander Commander
	// Pool has the pods that wait for another task; nil: none ever does.
	Pool *agentapi.Pool
	// PlanReason returns the reason that the newest plan gives for a pending job;
	// nil: none is known.
	PlanReason func(jobID int64) string
	// Stored reports whether a job with a final state is in the accounting database;
	// nil: it need not be.
	Stored func(b *v1alpha1.BatchJob) bool
	// Refused is called with the Kubernetes name of a node whose kubelet rejected a
	// planned pod, and the job if only that cannot run there, else 0; it may be nil.
	Refused func(node string, job int64)
	// Unprepared is called instead for a job whose devices were not prepared on the node in
	// time; it may be nil.
	Unprepared func(node string, job int64)
	// Nodes returns the nodes as sinfo shows them, which replace failed nodes of
	// reservations; nil: failed nodes are not replaced.
	Nodes func() []status.Node
	// StartTimeout and PullTimeout are those of Rules; 0: 60 s and 10 min.
	StartTimeout, PullTimeout time.Duration
	Now                       func() time.Time
	Log                       *slog.Logger
}

// Keeper acts on jobs. Its methods are safe for concurrent use.
type Keeper struct {
	Config
	queue workqueue.TypedRateLimitingInterface[int64]

	mu         sync.Mutex
	progress   map[int64]decide.Progress
	throttle   startThrottle
	dependents map[int64]map[int64]bool // job -> those whose dependency names it

	deferred deferredWrites

	lastBurst atomic.Int64 // when an assumed job of pods last appeared or changed its state, in ns
}

// New returns a Keeper. It must be called before the stores of c.Cluster are filled.
func New(c Config) *Keeper {
	if c.StartTimeout == 0 {
		c.StartTimeout = 60 * time.Second
	}
	if c.PullTimeout == 0 {
		c.PullTimeout = max(10*time.Minute, c.StartTimeout)
	}
	k := &Keeper{
		Config: c,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[int64](5*time.Millisecond, 5*time.Second)),
		progress:   map[int64]decide.Progress{},
		dependents: map[int64]map[int64]bool{},
	}
	c.Cluster.Jobs.Subscribe(k.jobChanged)
	c.Cluster.Pods.Subscribe(k.podChanged)
	c.Cluster.Nodes.Subscribe(k.nodeChanged)
	c.Cluster.Reservations.Subscribe(k.reservationChanged)
	c.Cluster.NodePools.Subscribe(k.poolChanged)
	c.Cluster.Settings.Subscribe(k.settingsChanged)
	return k
}

// Run reconciles jobs until ctx is done.
func (k *Keeper) Run(ctx context.Context, workers int) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { k.worker(ctx) })
	}
	wg.Go(func() { k.maintainReservations(ctx) })
	<-ctx.Done()
	k.queue.ShutDown()
	wg.Wait()
}

// worker reconciles queued jobs until the queue is shut down.
func (k *Keeper) worker(ctx context.Context) {
	for {
		id, stop := k.queue.Get()
		if stop {
			return
		}
		if err := k.reconcile(ctx, id); err != nil && ctx.Err() == nil {
			k.Log.Warn("job is retried", "job", id, "error", err)
			k.queue.AddRateLimited(id)
		} else {
			k.queue.Forget(id)
		}
		k.queue.Done(id)
	}
}

// jobChanged queues the job and those that its change concerns.
func (k *Keeper) jobChanged(old, now *v1alpha1.BatchJob) {
	if now == nil {
		k.forgetJob(old)
		k.enqueueOrigin(old)
		return
	}
	if now.Spec.JobID == 0 {
		return
	}
	if k.isBindBurst(old, now) {
		k.lastBurst.Store(k.Now().UnixNano())
	}
	k.trackDependencies(old, now)
	k.queue.Add(now.Spec.JobID)
	k.enqueueSiblings(now)
	if now.IsFinal() {
		k.enqueueOrigin(now)
		k.enqueueHost(now)
	}
}

// isBindBurst reports whether now is a new job of pods that has no object yet, or
// an assumed one whose state has changed.
func (k *Keeper) isBindBurst(old, now *v1alpha1.BatchJob) bool {
	if old == nil {
		return !control.IsCreated(now)
	}
	return now.Spec.Workload != nil && old.Status.State != now.Status.State && k.Cluster.Jobs.IsAssumed(now)
}

// siblings returns the other components of b's heterogeneous job; leader is the first
// component, or nil if that is b.
func (k *Keeper) siblings(b *v1alpha1.BatchJob) (leader *v1alpha1.BatchJob, others []*v1alpha1.BatchJob) {
	id := array.HetID(b)
	if id == 0 {
		return nil, nil
	}
	if id != b.Spec.JobID {
		if l, ok := k.Cluster.Job(id); ok {
			leader = l
			others = append(others, l)
		}
	}
	for _, c := range k.Cluster.SplitOff(id) {
		if c.Spec.JobID != b.Spec.JobID {
			others = append(others, c)
		}
	}
	return leader, others
}

// enqueueSiblings queues the other components of b's job.
func (k *Keeper) enqueueSiblings(b *v1alpha1.BatchJob) {
	_, others := k.siblings(b)
	slices.SortFunc(others, func(a, b *v1alpha1.BatchJob) int { return cmp.Compare(a.Spec.JobID, b.Spec.JobID) })
	for _, o := range others {
		k.queue.Add(o.Spec.JobID)
	}
}

// enqueueOrigin queues the job that b was split off from.
func (k *Keeper) enqueueOrigin(b *v1alpha1.BatchJob) {
	if o := b.Spec.Origin; o != nil {
		k.queue.Add(o.JobID)
	}
}

// podEventDelay is how long changes of a gang's pods are collected before its job is
// reconciled.
const podEventDelay = 5 * time.Millisecond

// podChanged queues the jobs that the pod belongs to.
func (k *Keeper) podChanged(old, now *corev1.Pod) {
	p := now
	if p == nil {
		p = old
	}
	if control.GroupOf(p) != "" {
		if b, _, ok := k.Cluster.WorkloadOf(p.UID); !ok {
			return
		} else if control.IsSinglePod(b) {
			k.queue.Add(b.Spec.JobID)
		} else {
			k.queue.AddAfter(b.Spec.JobID, podEventDelay)
		}
		return
	}
	id, err := strconv.ParseInt(p.Labels[wire.LabelJobID], 10, 64)
	if err != nil {
		return
	}
	k.queue.Add(id)
	if n, err := strconv.ParseInt(p.Labels[wire.LabelAttempt], 10, 32); err == nil {
		for _, t := range k.Cluster.InPods(id, int32(n)) {
			if !t.IsFinal() {
				k.queue.Add(t.Spec.JobID)
			}
		}
	}
}

// nodeChanged queues all jobs on a node that was deleted, is down, no longer responds, or will
// be removed.
func (k *Keeper) nodeChanged(old, now *corev1.Node) {
	n := now
	if n == nil {
		n = old
	}
	if now != nil && !nodeinfo.IsUnreachable(now) && !isDown(now) && now.Annotations[wire.AnnotationRemoval] == "" {
		return
	}
	k.enqueueAll(func(j *v1alpha1.BatchJob) bool {
		a := j.Status.Allocation
		return a != nil && j.HoldsAllocation() && slices.ContainsFunc(a.Nodes,
			func(x v1alpha1.NodeAllocation) bool {
				return x.ObjectName() == n.Name || x.Name == nodeinfo.PoolName(n)
			})
	})
}

// enqueueAll queues the jobs for which is is true, in the order of their ids, and returns
// their number.
func (k *Keeper) enqueueAll(is func(*v1alpha1.BatchJob) bool) int {
	var ids []int64
	for _, j := range k.Cluster.Jobs.List() {
		if is(j) {
			ids = append(ids, j.Spec.JobID)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		k.queue.Add(id)
	}
	return len(ids)
}

// isDown reports whether an operator has set the node down.
func isDown(n *corev1.Node) bool {
	return strings.EqualFold(n.Annotations[wire.AnnotationState], "down")
}

// trackDependencies records the jobs in the dependencies of now, a pending job, instead of
// those in old's. Dependencies of pending jobs may change (scontrol update), and a
// requeued job is pending again. old is nil for a new job, now for a deleted one.
func (k *Keeper) trackDependencies(old, now *v1alpha1.BatchJob) {
	before, after := dependencyIDs(old), dependencyIDs(now)
	if slices.Equal(before, after) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range before {
		if delete(k.dependents[id], old.Spec.JobID); len(k.dependents[id]) == 0 {
			delete(k.dependents, id)
			k.queue.Add(id) // it may be deleted now
		}
	}
	for _, id := range after {
		if k.dependents[id] == nil {
			k.dependents[id] = map[int64]bool{}
		}
		k.dependents[id][now.Spec.JobID] = true
	}
}

// dependencyIDs returns the ids of the jobs in b's dependencies if b is pending, or nil.
func dependencyIDs(b *v1alpha1.BatchJob) []int64 {
	if b == nil || b.Spec.JobID == 0 || !b.AwaitsStart() {
		return nil
	}
	items := b.Spec.Job.Dependencies.Items
	ids := make([]int64, 0, len(items))
	for i := range items {
		if !dependency.IsSingleton(items[i]) {
			ids = append(ids, items[i].JobID)
		}
	}
	return ids
}

// forgetJob removes the keeper's state about a deleted job.
func (k *Keeper) forgetJob(b *v1alpha1.BatchJob) {
	k.trackDependencies(b, nil)
	k.startDone(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.progress, b.Spec.JobID)
}

// facts gathers what a decision about b depends on.
func (k *Keeper) facts(b *v1alpha1.BatchJob) decide.Facts {
	id := b.Spec.JobID
	k.mu.Lock()
	defer k.mu.Unlock()
	leader, siblings := k.siblings(b)
	pods := k.pods(b)
	return decide.Facts{
		Job: b, Pods: pods, Unconfirmed: k.Cluster.Pods.AnyUnconfirmed(pods), Leader: leader,
		Siblings: siblings, PodsReused: k.podsReused(b.RunsIn(), b),
		PodsReusable: k.podsReusable(b), Unreachable: k.nodeUnreachable, Lost: k.nodeLost,
		Boot: k.boot, Down: k.nodeDown, Removal: k.removal,
		Now:   k.Now(),
		Rules: k.rules(b), Progress: k.progress[id], PlanReason: k.planReason(id), SplitOff: k.Cluster.SplitOff(id),
		IsAwaited:       len(k.dependents[id]) > 0 || len(k.dependents[array.ID(b)]) > 0,
		Assumed:         k.Cluster.Jobs.IsAssumed(b),
		Unstored:        k.Stored != nil && !k.Stored(b),
		ReservationEnds: k.reservationEnd(b),
		BindBurst:       k.Now().UnixNano()-k.lastBurst.Load() < int64(decide.BurstPause),
		StartThrottled:  k.throttle.full(id),
	}
}

// planReason returns the reason that the newest plan gives for the job.
func (k *Keeper) planReason(id int64) string {
	if k.PlanReason == nil {
		return ""
	}
	return k.PlanReason(id)
}

// Enqueue queues a job to be reconciled.
func (k *Keeper) Enqueue(id int64) { k.queue.Add(id) }

// rules returns the parameters that apply to b.
func (k *Keeper) rules(b *v1alpha1.BatchJob) decide.Rules {
	p := k.Cluster.Parameters()
	r := decide.Rules{
		KillWait: 30 * time.Second, MinJobAge: 300 * time.Second,
		OverTimeLimit: k.Cluster.OverTimeLimit(b.Status.Partition),
		KillInvalid:   strings.Contains(p.Parameters["SchedulerParameters"], "kill_invalid_depend"),
		StartTimeout:  k.StartTimeout, PullTimeout: k.PullTimeout, RemovalGrace: 20 * time.Second,
		Requeue: p.JobRequeue == nil || *p.JobRequeue, RequeueExit: array.Parse(p.RequeueExit),
		RequeueExitHold: array.Parse(p.RequeueExitHold),
	}
	if p.KillWait != nil {
		r.KillWait = time.Duration(*p.KillWait) * time.Second
	}
	if p.RemovalGrace != nil {
		r.RemovalGrace = time.Duration(*p.RemovalGrace) * time.Second
	}
	if p.MinJobAge != nil {
		r.MinJobAge = time.Duration(*p.MinJobAge) * time.Second
	}
	return r
}

// noteProgress changes the Progress of b's attempt.
func (k *Keeper) noteProgress(b *v1alpha1.BatchJob, change func(*decide.Progress)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.progress[b.Spec.JobID]
	if m.Attempt != b.Status.Attempt {
		m = decide.Progress{Attempt: b.Status.Attempt, Failures: m.Failures}
	}
	change(&m)
	k.progress[b.Spec.JobID] = m
}
