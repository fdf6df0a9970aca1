package decide

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// nodeLossGrace is how long Kubernetes may take to call a node unreachable after an
// agent missed it. The grace period of Kubernetes (50 s by default) counts from the
// node's last heartbeat, the agent's patience from the last packet; either may end
// first.
const nodeLossGrace = time.Minute

// OutcomeOfReport returns the outcome of a job that ended by itself, for which the batch
// host's agent reported r. The result of the script counts, unless it failed for another
// reason.
func (f *Facts) OutcomeOfReport(r wire.Report, ended time.Time) Action {
	own := Action{Kind: End, Outcome: FromReport(r)}
	if own.Outcome.Final != v1alpha1.StateFailed {
		return own
	}
	switch {
	case f.Job.EndRequested():
		own.Outcome.Final, own.Outcome.Reason = v1alpha1.StateCancelled, ""
		return own
	case f.Job.RequeueRequested():
		return requeueRequested()
	case r.Stopped:
		return f.nodeFailed("the pod of the batch host was told to end")
	}
	if a, ok := f.outcomeOfLostNode(r, ended); ok {
		return a
	}
	return f.requeueByExitCode(own)
}

// requeueByExitCode requeues a batch job if its exit code requires that (slurm.conf(5),
// RequeueExit, RequeueExitHold).
func (f *Facts) requeueByExitCode(own Action) Action {
	x := own.Outcome.Exit
	if x == nil || x.Signal != 0 || f.Job.Spec.Job.Batch.Client != "" || !f.requeueAllowed() {
		return own
	}
	hold := f.Rules.RequeueExitHold.Has(x.Status)
	if !hold && !f.Rules.RequeueExit.Has(x.Status) {
		return own
	}
	again := requeueRequested()
	again.Outcome.Exit, again.Outcome.Derived, again.Outcome.Hold = x, own.Outcome.Derived, hold
	return again
}

// outcomeOfLostNode returns the action for a job whose script failed after a node of the
// job stopped responding: if the node is unreachable, which may be known only later, that is
// the cause. ok is false if the failure of the script counts.
func (f *Facts) outcomeOfLostNode(r wire.Report, ended time.Time) (a Action, ok bool) {
	if r.LostNode == "" || f.Job.Spec.Job.Batch.NoKill || f.Job.Status.Allocation == nil {
		return Action{}, false
	}
	nodes := f.Job.Status.Allocation.Nodes
	for i := 1; i < len(nodes); i++ {
		if nodes[i].Name != r.LostNode {
			continue
		}
		if n := nodes[i].ObjectName(); f.Unreachable(n) {
			return f.nodeFailed("node " + n + " was lost"), true
		}
		// A pod that is being deleted goes because the batch host's pod ended.
		if p := f.podsByIndex()[i]; p != nil && hasEnded(p) && (p.DeletionTimestamp == nil || evicted(p)) {
			return f.agentEnded(p), true
		}
		due := ended.Add(nodeLossGrace - time.Duration(max(r.LostFor, 0)))
		return Action{Wake: due}, f.Now.Before(due)
	}
	return Action{}, false
}
