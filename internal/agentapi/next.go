package agentapi

import (
	"net/http"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
)

// reusable tells whether the pods of b may go to another task of its array
// when b has ended by itself.
func (s *Server) reusable(b *v1alpha1.BatchJob) bool {
	id := array.ID(b)
	if s.Pool == nil || id == 0 || len(b.Status.Allocation.Nodes) != 1 {
		return false
	}
	whole, ok := s.Cluster.Job(id)
	return ok && array.Whole(whole) && pending(whole) && whole.Spec.Cancel == nil &&
		whole.DeletionTimestamp == nil && whole.Spec.Job.Hold == ""
}

// offer puts the agent of a job that reports its end on offer, before the end
// is on record and a plan is made of it.
func (s *Server) offer(a *agent, r *wire.Report) bool {
	if r.Kind != wire.ReportEnded || r.OutOfMemory || r.Stopped || a.job.Status.State != v1alpha1.StateRunning || !s.reusable(a.job) {
		return false
	}
	if whole, _ := s.Cluster.Job(array.ID(a.job)); len(array.Rest(whole, s.Cluster.SplitOff(whole.Spec.JobID))) == 0 {
		return false
	}
	s.Pool.offer(a.job, array.ID(a.job))
	return true
}

// recall confirms the offer, or takes it back unless the job is over with its pods left.
func (s *Server) recall(a *agent) {
	b, ok := s.Cluster.Job(a.JobID)
	if ok && b.Status.Pods != nil && b.Status.Attempt == a.Attempt && !active(b) {
		s.Pool.confirm(HostOf(b))
		return
	}
	s.Pool.withdraw(HostOf(a.job))
}

// active tells whether the job's agents have something to do.
func active(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
		return true
	}
	return false
}

// next answers an agent whose job is over with the next one, if there is one
// for it before long.
func (s *Server) next(w http.ResponseWriter, r *http.Request) {
	s.hold(w)
	a, err := s.identify(r)
	if err != nil {
		fail(w, err)
		return
	}
	var q wire.NextQuery
	if err := receive(w, r, &q); err != nil {
		fail(w, err)
		return
	}
	b, err := s.nextFor(r, a, &q)
	if err != nil {
		fail(w, err)
		return
	}
	welcome, err := s.welcome(r.Context(), &agent{Place: placeOf(b), host: a.host, job: b}, b)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, welcome)
}

func (s *Server) nextFor(r *http.Request, a *agent, q *wire.NextQuery) (*v1alpha1.BatchJob, error) {
	host := v1alpha1.PodsOf{JobID: a.host.JobID, Attempt: a.host.Attempt}
	switch again := a.JobID == q.JobID && a.Attempt == q.Attempt; {
	case active(a.job) && !again:
		return a.job, nil // it was told so, and the answer was lost
	case active(a.job), s.Pool == nil:
		return nil, errOver
	}
	x := s.Pool.at(host)
	if x == nil {
		return nil, errOver
	}
	timeout := time.NewTimer(time.Until(x.until))
	defer timeout.Stop()
	for {
		select {
		case b := <-x.next:
			if b == nil {
				return nil, errOver
			}
			return b, nil
		case <-timeout.C:
			if s.Pool.withdraw(host) {
				continue // x.next is closed, or has a job
			}
			timeout.Reset(time.Second)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}
