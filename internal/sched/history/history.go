// Package history keeps, in a job's own status, what became of it: every
// change of state, and the earlier runs of a job that went back to the queue.
// Accounting reads them, so that neither a crash between two writes nor a
// database that is away makes a gap in a job's record.
package history

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// What a status holds at most; older entries go first. Both are far beyond
// what a job does while accounting's database answers.
const (
	maxChanges = 64
	maxPast    = 32
)

// StateRequeued is the state of a run that went back to the queue by request.
const StateRequeued = "REQUEUED"

// Note adds to now what the change from before means. It is to be called
// before every write of a status, with the instant of the write.
func Note(before, now *v1alpha1.BatchJobStatus, at metav1.MicroTime) {
	if stateOf(before) == stateOf(now) {
		return
	}
	if before.Allocation != nil && now.Allocation == nil || over(before.State) && stateOf(now) == v1alpha1.StatePending {
		if before.Message == "" || ran(before) { // else a start that was given back: nothing ran
			now.Past = tail(append(now.Past, past(before, at)), maxPast)
		}
		now.History = nil
	}
	now.History = tail(append(now.History, v1alpha1.StateChange{State: stateOf(now), At: at, Reason: now.Reason}), maxChanges)
}

func stateOf(s *v1alpha1.BatchJobStatus) string {
	if s.State == "" {
		return v1alpha1.StatePending
	}
	return s.State
}

func tail[T any](list []T, most int) []T {
	return list[max(0, len(list)-most):]
}

// over tells whether a job in that state has ended.
func over(state string) bool {
	switch state {
	case "", v1alpha1.StatePending, v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateCompleting, v1alpha1.StateSuspended:
		return false
	}
	return true
}

func ran(s *v1alpha1.BatchJobStatus) bool {
	return over(s.State) || slices.ContainsFunc(s.History, func(c v1alpha1.StateChange) bool { return c.State == v1alpha1.StateRunning })
}

// past is the run that ends with before.
func past(before *v1alpha1.BatchJobStatus, at metav1.MicroTime) v1alpha1.PastAttempt {
	p := v1alpha1.PastAttempt{
		Attempt: before.Attempt, Restarts: before.Restarts, State: StateRequeued, Reason: before.Reason,
		End: at, TimeLimit: before.TimeLimit, Partition: before.Partition,
		ExitCode: before.ExitCode, Derived: before.Derived, History: before.History,
	}
	switch {
	case over(before.State):
		p.State = before.State // a run that was over by itself keeps how
	case before.Message != "":
		p.State = v1alpha1.StateNodeFail // the keeper says why it took the job off its nodes
	default:
		p.ExitCode = nil // how its processes were ended is no outcome of the job's
	}
	if before.StartTime != nil {
		p.Start = *before.StartTime
	}
	if before.EndTime != nil {
		p.End = *before.EndTime
	}
	if len(before.Past) > 0 {
		p.Queued = before.Past[len(before.Past)-1].End
	}
	if a := before.Allocation; a != nil {
		allocated(&p, a)
	}
	return p
}

func allocated(p *v1alpha1.PastAttempt, a *v1alpha1.Allocation) {
	names := make([]string, 0, len(a.Nodes))
	at := map[[2]string]int{}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		names = append(names, n.Name)
		p.CPUs += n.CPUs
		p.Memory += n.Memory
		for _, g := range n.GRES {
			key := [2]string{g.Name, g.Type}
			if _, ok := at[key]; !ok {
				at[key] = len(p.GRES)
				p.GRES = append(p.GRES, v1alpha1.GRESAllocation{Name: g.Name, Type: g.Type})
			}
			p.GRES[at[key]].Count += g.Count
		}
	}
	p.Nodes, p.NodeList = int32(len(names)), hostlist.Fold(names)
}
