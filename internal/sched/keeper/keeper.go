package keeper

import (
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
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// ErrNotCurrent says that the attempt an agent speaks for is over.
var ErrNotCurrent = errors.New("this attempt of the job is over")

// Commander brings a command to the batch host of a job's attempt.
type Commander interface {
	Send(jobID int64, attempt int32, c wire.Command)
}

// Config says what a Keeper works with; all of it is needed but Commander,
// without which jobs are ended by deleting their pods.
type Config struct {
	Cluster   *control.Cluster
	Starter   *starter.Starter
	Commander Commander
	// Pool knows the pods that wait for another task; nil: none ever does.
	Pool *agentapi.Pool
	// Verdict tells the reason that the newest plan gives for a waiting job;
	// nil: none is known.
	Verdict func(jobID int64) string
	// Stored tells whether a job that is over is in the accounting database;
	// nil: it need not be.
	Stored func(b *v1alpha1.BatchJob) bool
	// Refused is told of nodes (by their Kubernetes names) whose kubelet refused
	// a planned pod; nil: nobody is.
	Refused func(node string)
	// Nodes are the pool's as sinfo shows them, from which reservations get nodes
	// for those that serve no more; nil: none are replaced.
	Nodes func() []status.Node
	// StartTimeout and PullTimeout; 0: 60 s and 10 min.
	StartTimeout, PullTimeout time.Duration
	Now                       func() time.Time
	Log                       *slog.Logger
}

// Keeper acts on jobs. Its methods are safe for concurrent use.
type Keeper struct {
	Config
	queue workqueue.TypedRateLimitingInterface[int64]

	mu       sync.Mutex
	memory   map[int64]Memory
	starting starting
	waitedBy map[int64]map[int64]bool // job -> those that wait for its end

	deferred deferredWrites

	rush atomic.Int64 // when a job last came or went on that is ahead of its object, in ns
}

// New makes a Keeper, before the stores of c.Cluster are fed.
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
		memory:   map[int64]Memory{},
		waitedBy: map[int64]map[int64]bool{},
	}
	c.Cluster.Jobs.Subscribe(k.jobChanged)
	c.Cluster.Pods.Subscribe(k.podChanged)
	c.Cluster.Nodes.Subscribe(k.nodeChanged)
	c.Cluster.Reservations.Subscribe(k.reservationChanged)
	return k
}

// Run acts until ctx ends.
func (k *Keeper) Run(ctx context.Context, workers int) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { k.work(ctx) })
	}
	wg.Go(func() { k.keepReservations(ctx) })
	<-ctx.Done()
	k.queue.ShutDown()
	wg.Wait()
}

func (k *Keeper) work(ctx context.Context) {
	for {
		id, stop := k.queue.Get()
		if stop {
			return
		}
		if err := k.keep(ctx, id); err != nil && ctx.Err() == nil {
			k.Log.Warn("job is tried again", "job", id, "error", err)
			k.queue.AddRateLimited(id)
		} else {
			k.queue.Forget(id)
		}
		k.queue.Done(id)
	}
}

func (k *Keeper) jobChanged(old, now *v1alpha1.BatchJob) {
	if now == nil {
		k.forget(old)
		k.tellOrigin(old)
		return
	}
	if now.Spec.JobID == 0 {
		return
	}
	if k.isRush(old, now) {
		k.rush.Store(k.Now().UnixNano())
	}
	k.noteDependencies(old, now)
	k.queue.Add(now.Spec.JobID)
	k.tellSiblings(now)
	if now.IsFinal() {
		k.tellOrigin(now)
		k.tellHost(now)
	}
}

// isRush reports whether now is a new job of pods that has no object yet, or an
// assumed one whose state has changed.
func (k *Keeper) isRush(old, now *v1alpha1.BatchJob) bool {
	if old == nil {
		return !control.IsCreated(now)
	}
	return now.Spec.Workload != nil && old.Status.State != now.Status.State && k.Cluster.Jobs.IsAssumed(now)
}

// siblings are the other components of a heterogeneous job; leader is the first
// one, if that is not b.
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

// tellSiblings has another look at the other components of b's job.
func (k *Keeper) tellSiblings(b *v1alpha1.BatchJob) {
	if _, others := k.siblings(b); len(others) > 0 {
		for _, o := range others {
			k.queue.Add(o.Spec.JobID)
		}
	}
}

// tellOrigin has another look at what b was split off from.
func (k *Keeper) tellOrigin(b *v1alpha1.BatchJob) {
	if o := b.Spec.Origin; o != nil {
		k.queue.Add(o.JobID)
	}
}

// gather is how long what happens to a gang's pods is gathered before it is
// looked at.
const gather = 5 * time.Millisecond

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
			k.queue.AddAfter(b.Spec.JobID, gather)
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

// nodeChanged looks at every job on a node that went or stopped answering.
func (k *Keeper) nodeChanged(old, now *corev1.Node) {
	n := now
	if n == nil {
		n = old
	}
	if now != nil && !lost(now) && !down(now) {
		return
	}
	for _, j := range k.Cluster.Jobs.List() {
		if a := j.Status.Allocation; a != nil && j.HoldsAllocation() {
			for i := range a.Nodes {
				if nodeObject(&a.Nodes[i]) == n.Name {
					k.queue.Add(j.Spec.JobID)
					break
				}
			}
		}
	}
}

// lost tells whether the node has stopped answering, by Kubernetes' own
// judgement (the node lifecycle controller's grace period).
func lost(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}

// down tells whether an operator has set the node down.
func down(n *corev1.Node) bool { return strings.EqualFold(n.Annotations[wire.AnnotationState], "down") }

// nodeDown answers Facts.Down.
func (k *Keeper) nodeDown(name string) bool {
	n, ok := k.Cluster.Nodes.Get(name)
	return ok && down(n)
}

// nodeLost answers Facts.Lost.
func (k *Keeper) nodeLost(name string) bool {
	n, ok := k.Cluster.Nodes.Get(name)
	return !ok || lost(n)
}

// noteDependencies records which jobs the waiting job's dependencies name, in
// place of those that old's named. A dependency may be changed while the job
// waits (scontrol update), and a job that was requeued waits once more. old is
// nil for a new job, now for one that is gone.
func (k *Keeper) noteDependencies(old, now *v1alpha1.BatchJob) {
	before, after := awaitedJobs(old), awaitedJobs(now)
	if slices.Equal(before, after) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range before {
		if delete(k.waitedBy[id], old.Spec.JobID); len(k.waitedBy[id]) == 0 {
			delete(k.waitedBy, id)
		}
	}
	for _, id := range after {
		if k.waitedBy[id] == nil {
			k.waitedBy[id] = map[int64]bool{}
		}
		k.waitedBy[id][now.Spec.JobID] = true
	}
}

// awaitedJobs returns the numbers of the jobs that b's dependencies name, if b
// is waiting, and nil otherwise.
func awaitedJobs(b *v1alpha1.BatchJob) []int64 {
	if b == nil || b.Spec.JobID == 0 || !b.AwaitsStart() {
		return nil
	}
	items := b.Spec.Job.Dependencies.Items
	ids := make([]int64, 0, len(items))
	for i := range items {
		ids = append(ids, items[i].JobID)
	}
	return ids
}

func (k *Keeper) forget(b *v1alpha1.BatchJob) {
	k.noteDependencies(b, nil)
	k.started(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.memory, b.Spec.JobID)
}

// facts gathers what a decision about b needs.
func (k *Keeper) facts(b *v1alpha1.BatchJob) Facts {
	id := b.Spec.JobID
	k.mu.Lock()
	defer k.mu.Unlock()
	leader, siblings := k.siblings(b)
	return Facts{
		Job: b, Pods: k.pods(b), Leader: leader, Siblings: siblings, Taken: k.taken(host(b), b), Lingering: k.lingers(b), Lost: k.nodeLost, Down: k.nodeDown, Now: k.Now(),
		Rules: k.rules(b), Memory: k.memory[id], Verdict: k.verdict(id), SplitOff: k.Cluster.SplitOff(id),
		Needed:   len(k.waitedBy[id]) > 0 || len(k.waitedBy[array.ID(b)]) > 0,
		Assumed:  k.Cluster.Jobs.IsAssumed(b),
		Unstored: k.Stored != nil && !k.Stored(b),
		Expires:  k.expires(b),
		Rush:     k.Now().UnixNano()-k.rush.Load() < int64(rushPause),
		Crowded:  k.starting.full(id),
	}
}

func (k *Keeper) verdict(id int64) string {
	if k.Verdict == nil {
		return ""
	}
	return k.Verdict(id)
}

// Look has the keeper decide about a job again.
func (k *Keeper) Look(id int64) { k.queue.Add(id) }

func (k *Keeper) rules(b *v1alpha1.BatchJob) Rules {
	p := k.Cluster.Parameters()
	r := Rules{
		KillWait: 30 * time.Second, MinJobAge: 300 * time.Second,
		OverTimeLimit: k.Cluster.OverTimeLimit(b.Status.Partition),
		KillInvalid:   strings.Contains(p.Parameters["SchedulerParameters"], "kill_invalid_depend"),
		StartTimeout:  k.StartTimeout, PullTimeout: k.PullTimeout,
		Requeue: p.JobRequeue == nil || *p.JobRequeue, RequeueExit: array.Parse(p.RequeueExit), RequeueExitHold: array.Parse(p.RequeueExitHold),
	}
	if p.KillWait != nil {
		r.KillWait = time.Duration(*p.KillWait) * time.Second
	}
	if p.MinJobAge != nil {
		r.MinJobAge = time.Duration(*p.MinJobAge) * time.Second
	}
	return r
}

// remember changes what this process knows to have done for the attempt.
func (k *Keeper) remember(b *v1alpha1.BatchJob, change func(*Memory)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.memory[b.Spec.JobID]
	if m.Attempt != b.Status.Attempt {
		m = Memory{Attempt: b.Status.Attempt, Failures: m.Failures}
	}
	change(&m)
	k.memory[b.Spec.JobID] = m
}
