package control

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// A job's status has the history of the job: every change of state, and the previous
// attempts of a requeued job. Accounting reads them, so that neither a crash between
// two writes nor an unavailable database causes a gap in the job's record.

// Limits of what a status keeps; the oldest entries are dropped first. Both are far more
// than a job needs while the database of accounting is available.
const (
	maxChanges = 64
	maxPast    = 32
)

// StatusAfter returns a copy of before to which change was applied at that time. If the
// state differs, it adds the change to the history.
func StatusAfter(before *v1alpha1.BatchJobStatus, at time.Time,
	change func(*v1alpha1.BatchJobStatus)) v1alpha1.BatchJobStatus {
	now := before.DeepCopy()
	change(now)
	noteChange(before, now, metav1.NewMicroTime(at))
	return *now
}

// noteChange adds the change of state from before to now to the history of now.
func noteChange(before, now *v1alpha1.BatchJobStatus, at metav1.MicroTime) {
	state := stateOf(now)
	if stateOf(before) == state {
		return
	}
	givenUp := before.Allocation != nil && now.Allocation == nil
	requeued := before.IsFinal() && state == v1alpha1.StatePending
	if givenUp || requeued {
		now.Past = lastOf(append(now.Past, pastAttempt(before, at)), maxPast)
		now.History = nil
	}
	entry := v1alpha1.StateChange{State: state, At: at, Reason: now.Reason}
	now.History = lastOf(append(now.History, entry), maxChanges)
}

func stateOf(s *v1alpha1.BatchJobStatus) string {
	if s.State == "" {
		return v1alpha1.StatePending
	}
	return s.State
}

// lastOf returns the last entries of the list, at most n.
func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// pastAttempt returns the attempt of the job that ends with before.
func pastAttempt(before *v1alpha1.BatchJobStatus, at metav1.MicroTime) v1alpha1.PastAttempt {
	p := v1alpha1.PastAttempt{
		Attempt: before.Attempt, Restarts: before.Restarts, State: status.StateRequeued, Reason: before.Reason,
		Message: before.Message, End: at, TimeLimit: before.TimeLimit, Partition: before.Partition,
		ExitCode: before.ExitCode, Derived: before.Derived, History: before.History,
	}
	switch {
	case before.IsFinal():
		p.State = before.State // the attempt ended by itself: its state stays
	case before.Message != "":
		p.State = v1alpha1.StateNodeFail // the message says why the keeper released the nodes
	default:
		p.ExitCode = nil // the processes were killed: their exit code is not the job's
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
		addAllocation(&p, a)
	}
	return p
}

// addAllocation adds the job's allocation, summed over its nodes, to p.
func addAllocation(p *v1alpha1.PastAttempt, a *v1alpha1.Allocation) {
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
