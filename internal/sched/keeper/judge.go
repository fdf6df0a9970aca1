package keeper

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// verdictTime is how long after an agent missed another node Kubernetes may
// take to say that the node is lost: its grace period (50 s by default) counts
// from the node's last heartbeat, the agent's patience from the last packet.
// Which of them is over first is chance.
const verdictTime = time.Minute

// judge says how a job that was not told to end does end, of which the batch
// host's agent reports r at the instant ended. The script's own word counts
// unless it failed and something else is to blame.
func (f *Facts) judge(r wire.Report, ended time.Time) Action {
	own := Action{Kind: End, Outcome: FromReport(r)}
	if own.Outcome.Final != v1alpha1.StateFailed {
		return own
	}
	switch {
	case f.cancelled():
		own.Outcome.Final, own.Outcome.Reason = v1alpha1.StateCancelled, ""
		return own
	case f.requeueAsked():
		return requested()
	case r.Stopped:
		return f.nodeFailed("the pod of the batch host was told to end")
	}
	if a, ok := f.missing(r, ended); ok {
		return a
	}
	return f.byExitCode(own)
}

// byExitCode sends a batch job back to the queue whose exit code asks for it
// (slurm.conf(5), RequeueExit, RequeueExitHold).
func (f *Facts) byExitCode(own Action) Action {
	x := own.Outcome.Exit
	if x == nil || x.Signal != 0 || f.Job.Spec.Job.Batch.Client != "" || !f.requeueAllowed() {
		return own
	}
	hold := f.Rules.RequeueExitHold.Has(x.Status)
	if !hold && !f.Rules.RequeueExit.Has(x.Status) {
		return own
	}
	again := requested()
	again.Outcome.Exit, again.Outcome.Derived, again.Outcome.Hold = x, own.Outcome.Derived, hold
	return again
}

// missing says what becomes of a job whose script failed after a node of the
// job stopped answering: that node's failure if it is one, which may show
// later. ok is false if the script's failure is its own.
func (f *Facts) missing(r wire.Report, ended time.Time) (a Action, ok bool) {
	if r.LostNode == "" || f.Job.Spec.Job.Batch.NoKill || f.Job.Status.Allocation == nil {
		return Action{}, false
	}
	nodes := f.Job.Status.Allocation.Nodes
	for i := 1; i < len(nodes); i++ {
		if nodes[i].Name != r.LostNode {
			continue
		}
		if n := nodeObject(&nodes[i]); f.Lost(n) {
			return f.nodeFailed("node " + n + " was lost"), true
		}
		// One that is being deleted goes because the batch host's pod ended.
		if p := f.byIndex()[i]; p != nil && over(p) && (p.DeletionTimestamp == nil || evicted(p)) {
			return f.agentEnded(p), true
		}
		due := ended.Add(verdictTime - time.Duration(max(r.LostFor, 0)))
		return Action{Wake: due}, f.Now.Before(due)
	}
	return Action{}, false
}
