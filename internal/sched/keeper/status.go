package keeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/wire"
)

// errChanged means that the job changed after the decision. The store has the newer
// version, so the job is reconciled again.
var errChanged = errors.New("the job changed")

// write changes b's status. It returns errChanged if b is not the newest version.
func (k *Keeper) write(
	ctx context.Context, b *v1alpha1.BatchJob, change func(*v1alpha1.BatchJobStatus),
) (*v1alpha1.BatchJob, error) {
	n, err := k.Cluster.WriteStatus(ctx, b, k.Now(), change)
	switch {
	case apierrors.IsConflict(err):
		return nil, errChanged // WriteStatus has read the newest version
	case apierrors.IsNotFound(err):
		return nil, k.refresh(ctx, b)
	case err != nil:
		return nil, fmt.Errorf("writing the state of job %d: %w", b.Spec.JobID, err)
	}
	return n, nil
}

// refresh reads b from the API server into the store and returns errChanged.
func (k *Keeper) refresh(ctx context.Context, b *v1alpha1.BatchJob) error {
	if !control.IsCreated(b) {
		return errChanged // there is no object to read
	}
	n := &v1alpha1.BatchJob{}
	err := k.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(b), n)
	switch {
	case apierrors.IsNotFound(err), err == nil && n.UID != b.UID:
		k.Cluster.Jobs.Remove(b, k.Now())
	case err != nil:
		return fmt.Errorf("reading job %d: %w", b.Spec.JobID, err)
	default:
		k.Cluster.ApplyJob(n)
	}
	return errChanged
}

// end writes the outcome of the attempt. A job with nodes becomes COMPLETING, one without
// nodes has its final state immediately.
func (k *Keeper) end(ctx context.Context, b *v1alpha1.BatchJob, o decide.Outcome) error {
	if err := k.holdRequeued(ctx, b, &o); err != nil {
		return err
	}
	o.Message += k.lastWarning(ctx, o.NotStarted)
	_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { decide.SetOutcome(b, s, o, k.Now()) })
	if err == nil {
		k.logRequeue(b, &o)
		k.reportRefusedNode(ctx, b, &o)
	}
	return err
}

// lastWarning returns Kubernetes' last warning about the pod as the end of a message, or "" if
// there is none or it cannot be read.
func (k *Keeper) lastWarning(ctx context.Context, p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	events, err := k.Cluster.PodEvents(ctx, p)
	if err != nil {
		k.Log.Warn("events of a pod cannot be read", "pod", p.Name, "error", err)
		return ""
	}
	for i := range slices.Backward(events) {
		if e := &events[i]; e.Type == corev1.EventTypeWarning {
			return ": " + e.Reason + ": " + strings.Join(strings.Fields(e.Message), " ") // one line
		}
	}
	return ""
}

// holdRequeued holds a job that is requeued and held. This changes the job's version, so
// it is reconciled again.
func (k *Keeper) holdRequeued(ctx context.Context, b *v1alpha1.BatchJob, o *decide.Outcome) error {
	if !o.Hold || b.Spec.Job.Hold != "" {
		return nil
	}
	n := b.DeepCopy()
	n.Spec.Job.Hold = "special"
	err := k.Cluster.Client.Patch(ctx, n, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return k.refresh(ctx, b)
	case err != nil:
		return fmt.Errorf("holding job %d: %w", b.Spec.JobID, err)
	}
	k.Cluster.ApplyJob(n)
	return errChanged
}

// reportRefusedNode corrects the view of a node that refused a pod: the node is read
// again, and the planner avoids it for a while: for this job only, if the node cannot give
// it its CPUs or devices.
func (k *Keeper) reportRefusedNode(ctx context.Context, b *v1alpha1.BatchJob, o *decide.Outcome) {
	if o.Refused == "" {
		return
	}
	n := &corev1.Node{}
	if err := k.Cluster.Client.Get(ctx, client.ObjectKey{Name: o.Refused}, n); err == nil {
		k.Cluster.Nodes.Apply(n)
	}
	switch {
	case o.Unprepared && k.Unprepared != nil:
		k.Unprepared(o.Refused, b.Spec.JobID)
	case k.Refused == nil:
	case o.ThisJobOnly:
		k.Refused(o.Refused, b.Spec.JobID)
	default:
		k.Refused(o.Refused, 0)
	}
}

// logRequeue counts and logs a failed start after which b is requeued.
func (k *Keeper) logRequeue(b *v1alpha1.BatchJob, o *decide.Outcome) {
	if o.Final == v1alpha1.StatePending && !o.Requested {
		k.Log.Info("requeueing job", "job", b.Spec.JobID, "attempt", b.Status.Attempt, "why", o.Message)
		k.noteProgress(b, func(m *decide.Progress) { m.Failures++ })
	}
}

// finish writes the state that follows COMPLETING, or sends a job with a final
// state back to the queue.
func (k *Keeper) finish(ctx context.Context, b *v1alpha1.BatchJob) error {
	k.mu.Lock()
	failures := k.progress[b.Spec.JobID].Failures
	k.mu.Unlock()
	_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { decide.SetFinal(b, s, k.Now(), failures) })
	return err
}

// GangReady is called when every agent of the attempt has reported, with the agents in
// the order of the job's nodes. It makes the job RUNNING and returns it as written; a
// repeated call returns the present job.
func (k *Keeper) GangReady(
	ctx context.Context, jobID int64, attempt int32, agents []wire.AgentInfo,
) (*v1alpha1.BatchJob, error) {
	return k.update(ctx, jobID, attempt, func(b *v1alpha1.BatchJob) (func(*v1alpha1.BatchJobStatus), error) {
		switch b.Status.State {
		case v1alpha1.StateRunning:
			return nil, nil
		case v1alpha1.StateConfiguring:
		default:
			return nil, ErrNotCurrent
		}
		if len(agents) != len(b.Status.Allocation.Nodes) {
			return nil, fmt.Errorf("%d agents for the %d nodes of job %d", len(agents),
				len(b.Status.Allocation.Nodes), jobID)
		}
		if b.EndRequested() || b.RequeueRequested() {
			return nil, ErrNotCurrent
		}
		return func(s *v1alpha1.BatchJobStatus) {
			now := metav1.NewMicroTime(k.Now())
			s.State, s.StartTime, s.Message = v1alpha1.StateRunning, &now, ""
			for i := range s.Allocation.Nodes {
				n := &s.Allocation.Nodes[i]
				n.Address = agents[i].Address
				if !k.hasSharedCPUs(n.ObjectName()) {
					decide.SetCPUs(n, agents[i].CPUs)
				}
			}
			k.noteProgress(b, func(m *decide.Progress) { m.Failures = 0 })
		}, nil
	})
}

// Report handles a report of the batch host's agent. When it returns nil, what
// matters of the report is in the job's object, or will be read from the agent's
// pod when that has ended. It may be called again with the same report.
func (k *Keeper) Report(ctx context.Context, jobID int64, attempt int32, r wire.Report) error {
	if r.Kind != wire.ReportEnded && r.Kind != wire.ReportFailed {
		return nil
	}
	var end *decide.Outcome
	b, err := k.update(ctx, jobID, attempt, func(b *v1alpha1.BatchJob) (func(*v1alpha1.BatchJobStatus), error) {
		end = nil
		switch b.Status.State {
		case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended:
			f := k.facts(b)
			a := f.OutcomeOfReport(r, f.Now)
			if a.Kind != decide.End {
				return nil, nil
			}
			if err := k.holdRequeued(ctx, b, &a.Outcome); err != nil {
				return nil, err
			}
			end = &a.Outcome
			if f.PodsReusable && b.Status.State == v1alpha1.StateRunning && decide.MayLeavePods(&a.Outcome) {
				return func(s *v1alpha1.BatchJobStatus) { k.leavePods(b, s, a.Outcome) }, nil
			}
			return func(s *v1alpha1.BatchJobStatus) { decide.SetOutcome(b, s, a.Outcome, k.Now()) }, nil
		case v1alpha1.StateCompleting:
			if b.Status.ExitCode != nil {
				return nil, nil
			}
			o := decide.FromReport(r)
			return func(s *v1alpha1.BatchJobStatus) { s.ExitCode, s.Derived = o.Exit, o.Derived }, nil
		}
		return nil, nil
	})
	if err == nil && end != nil {
		k.logRequeue(b, end)
	}
	return err
}

// update writes the change of status that decide returns for the job, and tries
// again as often as the job changes meanwhile. A nil change means that there is
// nothing to write.
func (k *Keeper) update(ctx context.Context, jobID int64, attempt int32,
	decide func(*v1alpha1.BatchJob) (func(*v1alpha1.BatchJobStatus), error)) (*v1alpha1.BatchJob, error) {
	for {
		b, ok := k.Cluster.Job(jobID)
		if !ok || b.Status.Attempt != attempt || b.Status.Allocation == nil {
			return nil, ErrNotCurrent
		}
		change, err := decide(b)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil || change == nil {
			return b, err
		}
		n, err := k.write(ctx, b, change)
		if !errors.Is(err, errChanged) {
			return n, err
		}
	}
}
