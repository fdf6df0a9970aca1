package decide

import "time"

// nodeRemoved is Next for a job that has nothing else to do before wake. If one of its nodes will be
// removed, the job gets the signal of --signal, and is requeued after a grace time, so that its
// other nodes are free and it can start elsewhere. A job that must not be requeued runs on: it
// may end before the node does.
func (f *Facts) nodeRemoved(wake time.Time) Action {
	at, node, by := f.firstRemoval()
	if at.IsZero() {
		return Action{Wake: wake}
	}
	due := at.Add(f.Rules.RemovalGrace)
	switch mayRequeue := f.requeueAllowed(); {
	case f.Job.Spec.Job.Time.Signal != 0 && !f.Progress.RemovalWarned:
		return Action{Kind: WarnRemoval, Wake: wake}
	case mayRequeue && !f.Now.Before(due):
		return returnToQueue("node " + node + " will be removed (" + by + ")")
	case mayRequeue:
		wake = earliest(wake, due)
	}
	return Action{Wake: wake}
}

// firstRemoval returns the node of the job whose removal was announced first, when and by what;
// zero: all stay. With --no-kill only the batch host matters.
func (f *Facts) firstRemoval() (at time.Time, node, by string) {
	if f.Removal == nil {
		return at, "", ""
	}
	for i := range f.Job.Status.Allocation.Nodes {
		if i > 0 && f.Job.Spec.Job.Batch.NoKill {
			break
		}
		name := f.Job.Status.Allocation.Nodes[i].ObjectName()
		if t, what := f.Removal(name); !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, node, by = t, name, what
		}
	}
	return at, node, by
}
