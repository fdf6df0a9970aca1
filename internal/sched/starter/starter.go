// Package starter starts the jobs that the planner has decided to start: it writes the
// placement into the job's status, creates the objects that run the job, and provides
// kube-scheduler's plugin with the node of each pod. All actions are idempotent: after a
// crash, the next leader continues from the objects.
package starter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/wire"
)

// Builder returns the objects of a placed job; it is pure.
type Builder func(*v1alpha1.BatchJob) (*podgroup.PodGroup, *jobset.JobSet, error)

// Starter starts jobs. Safe for concurrent use.
type Starter struct {
	cluster *control.Cluster
	build   Builder
	now     func() time.Time
	// Pool has the agents that can run another job in their pod; nil: pods are never
	// reused. Set it before use.
	Pool *agentapi.Pool
}

// New returns a Starter.
func New(c *control.Cluster, build Builder, now func() time.Time) *Starter {
	return &Starter{cluster: c, build: build, now: now}
}

// Placement is a decision to start a job.
type Placement struct {
	Job        *v1alpha1.BatchJob // the version that the decision is based on
	Task       *int32             // the task to start, if it is an array
	Partition  string
	TimeLimit  int32 // minutes, or job.Unlimited
	Priority   int64
	Allocation *v1alpha1.Allocation
	// Reservation is the reservation that the job uses without having requested it, or "".
	Reservation string
}

// ErrChanged means that the job changed after the decision and must be planned again.
var ErrChanged = errors.New("the job changed since the plan was made")

// Place writes the placement: from then on the job is CONFIGURING and has its
// allocation. Create creates its objects. If an existing pod can be reused, the job is
// RUNNING there and has no objects of its own. The error is ErrChanged if the job must be
// planned again.
func (s *Starter) Place(ctx context.Context, p Placement) error {
	if s.cluster.Jobs.MayAssumeStatus(p.Job) {
		return s.assumePlaced(p)
	}
	if x := s.reserveAgent(&p); x != nil {
		return s.placeAt(ctx, p, x)
	}
	_, err := s.write(ctx, p, configuring)
	return err
}

// assumePlaced places the job of a single pod without a write. The binding of the pod,
// which follows, records the placement.
func (s *Starter) assumePlaced(p Placement) error {
	if pod, ok := s.cluster.Pods.ByUID(p.Job.Spec.Workload.Pods[0].UID); ok && pod.Spec.NodeName != "" {
		return ErrChanged // an earlier process placed it: the keeper handles that
	}
	if !p.Job.AwaitsStart() {
		return ErrChanged
	}
	if _, ok := s.cluster.Jobs.AssumeStatus(p.Job, s.now(), p.change(s.now(), configuring)); !ok {
		return ErrChanged
	}
	return nil
}

func configuring(st *v1alpha1.BatchJobStatus) { st.State, st.Pods = v1alpha1.StateConfiguring, nil }

// write writes a placement; state sets the state that the job starts with.
func (s *Starter) write(
	ctx context.Context, p Placement, state func(*v1alpha1.BatchJobStatus),
) (*v1alpha1.BatchJob, error) {
	if known, ok := s.cluster.Job(p.Job.Spec.JobID); !ok || known != p.Job || !known.AwaitsStart() {
		return nil, ErrChanged
	}
	now := s.now()
	b, err := s.cluster.WriteStatus(ctx, p.Job, now, p.change(now, state))
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil, ErrChanged
		}
		return nil, fmt.Errorf("placing job %d: %w", p.Job.Spec.JobID, err)
	}
	return b, nil
}

// change returns the change of the status of a pending job by which it is placed
// at start; state sets the state that it starts with.
func (p *Placement) change(start time.Time, state func(*v1alpha1.BatchJobStatus)) func(*v1alpha1.BatchJobStatus) {
	return func(st *v1alpha1.BatchJobStatus) {
		at := metav1.NewMicroTime(start)
		if p.Job != nil && p.Task == nil {
			st.Requeues = p.Job.Spec.Requeues // a requeue requested of a pending job is done
		}
		st.Final, st.Reason, st.Message = "", "", ""
		st.Attempt++
		st.Partition, st.TimeLimit, st.Priority, st.Allocation = p.Partition, p.TimeLimit, p.Priority, p.Allocation
		st.Reservation, st.ShortenedFrom = p.Reservation, p.shortenedFrom()
		st.StartTime, st.EndTime, st.ExitCode, st.Derived = &at, nil, nil, nil
		state(st)
	}
}

// shortenedFrom returns the time limit that the job requested if it starts with a
// shorter one, else 0.
func (p *Placement) shortenedFrom() int32 {
	if p.Job == nil || p.Job.Spec.Job.Time.Limit == p.TimeLimit {
		return 0
	}
	return p.Job.Spec.Job.Time.Limit
}

// PlaceTogether places the components of a heterogeneous job. If this process dies
// between two of them, the keeper releases those that were placed.
func (s *Starter) PlaceTogether(ctx context.Context, ps []Placement) error {
	for _, p := range ps {
		if known, ok := s.cluster.Job(p.Job.Spec.JobID); !ok || known != p.Job || !known.AwaitsStart() {
			return ErrChanged
		}
	}
	for _, p := range ps {
		if err := s.Place(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseUnused releases the pods that waited for another job when the plan was made,
// and for which the plan has none.
func (s *Starter) ReleaseUnused(planned time.Time) {
	if s.Pool != nil {
		s.Pool.ReleaseUnused(planned)
	}
}

// Preempt writes that a running job is preempted by the job with the id by. The keeper
// warns it immediately and ends it after the grace time.
func (s *Starter) Preempt(
	ctx context.Context, victim *v1alpha1.BatchJob, by int64, mode string, grace time.Duration,
) error {
	if known, ok := s.cluster.Job(victim.Spec.JobID); !ok || known != victim {
		return ErrChanged
	}
	now := s.now()
	_, err := s.cluster.WriteStatus(ctx, victim, now, func(st *v1alpha1.BatchJobStatus) {
		st.Preempt = &v1alpha1.Preemption{
			By: by, Mode: mode, At: metav1.NewMicroTime(now), Due: metav1.NewMicroTime(now.Add(grace)),
		}
	})
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ErrChanged
		}
		return fmt.Errorf("preempting job %d: %w", victim.Spec.JobID, err)
	}
	return nil
}

// Create creates the PodGroup and the JobSet of a placed job, unless they exist.
func (s *Starter) Create(ctx context.Context, b *v1alpha1.BatchJob) error {
	group, set, err := s.build(b)
	if err != nil {
		return &BuildError{err}
	}
	for _, o := range []client.Object{group, set} {
		if err := s.cluster.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the objects of job %d: %w", b.Spec.JobID, err)
		}
	}
	return nil
}

// BuildError means that the objects of the job cannot be built. Retrying does not help.
type BuildError struct{ Err error }

func (e *BuildError) Error() string { return e.Err.Error() }
func (e *BuildError) Unwrap() error { return e.Err }

// Placements provides kube-scheduler's plugin with the allocations of jobs.
type Placements struct{ Cluster *control.Cluster }

// Place returns the node of a pod; see plugin.Placements.
func (p Placements) Place(namespace string, jobID int64, attempt int32, index int) (node string, size int, ok bool) {
	b, known := p.Cluster.Job(jobID)
	if !known || b.Namespace != namespace || b.Status.State != v1alpha1.StateConfiguring ||
		b.Status.Attempt != attempt || b.Status.Allocation == nil {
		return "", 0, false
	}
	nodes := b.Status.Allocation.Nodes
	if b.Spec.Workload != nil {
		node, ok = taskNode(nodes, index)
		return p.object(node), len(b.Spec.Workload.Pods), ok
	}
	if index < 0 || index >= len(nodes) {
		return "", 0, false
	}
	return p.object(nodes[index].ObjectName()), len(nodes), true
}

// object returns the name of the object of a node, which may have come with another name than
// its pool lists after the job had got it.
func (p Placements) object(given string) string {
	if _, ok := p.Cluster.Nodes.Get(given); ok {
		return given
	}
	if n := pools.Object(given, p.Cluster.NodesNamed(given)...); n != nil {
		return n.Name
	}
	return given
}

// taskNode returns the node of an array task.
func taskNode(nodes []v1alpha1.NodeAllocation, task int) (string, bool) {
	if task < 0 {
		return "", false
	}
	for i := range nodes {
		if task < int(nodes[i].Tasks) {
			return nodes[i].ObjectName(), true
		}
		task -= int(nodes[i].Tasks)
	}
	return "", false
}

// Workload returns the job that represents a pod; see plugin.Placements.
func (p Placements) Workload(pod *corev1.Pod) (jobID int64, attempt int32, index int, ok bool) {
	b, index, ok := p.Cluster.WorkloadOf(pod.UID)
	if !ok || b.Namespace != pod.Namespace {
		return 0, 0, 0, false
	}
	return b.Spec.JobID, b.Status.Attempt, index, true
}

// Bound returns the pods of the attempt that are bound to a node.
func (p Placements) Bound(jobID int64, attempt int32) []types.UID {
	var out []types.UID
	if b, ok := p.Cluster.Job(jobID); ok && b.Spec.Workload != nil {
		for _, pod := range p.Cluster.MemberPods(b) {
			if pod.Spec.NodeName != "" {
				out = append(out, pod.UID)
			}
		}
		return out
	}
	for _, pod := range p.Cluster.JobPods(jobID) {
		if pod.Spec.NodeName != "" && pod.Labels[wire.LabelAttempt] == strconv.Itoa(int(attempt)) {
			out = append(out, pod.UID)
		}
	}
	return out
}
