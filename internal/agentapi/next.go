package agentapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
)

// offer adds the agent of a job that reports its end to the pool, if a job is
// pending that its pod may serve. It does so before the end is recorded and a plan
// is made with it.
func (s *Server) offer(a *agent, r *wire.Report) bool {
	b := a.job
	if s.Pool == nil || a.mold == "" || r.Kind != wire.ReportEnded || r.OutOfMemory || r.Stopped ||
		b.Status.State != v1alpha1.StateRunning || len(b.Status.Allocation.Nodes) != 1 {
		return false
	}
	if host, ok := s.Cluster.Job(HostOf(b).JobID); !ok || host.DeletionTimestamp != nil {
		return false // its pods go with it
	}
	kin := control.Kin(b, b.Status.Partition)
	if kin == "" || s.podPerJob(b.Status.Partition) || !s.kinWaits(b, kin) {
		return false
	}
	s.Pool.Offer(b, kin, a.mold)
	return true
}

// podPerJob reports whether the partition allows one job per pod only.
func (s *Server) podPerJob(partition string) bool {
	p, ok := s.Cluster.Partitions.Get(partition)
	return ok && p.Spec.PodPerJob
}

// kinWaits reports whether another job than b with the same reuse key is pending.
func (s *Server) kinWaits(b *v1alpha1.BatchJob, kin string) bool {
	var arrays []*v1alpha1.BatchJob
	if s.Cluster.Jobs.Any(kin, func(o *v1alpha1.BatchJob) bool {
		if array.Whole(o) {
			arrays = append(arrays, o)
			return false
		}
		return o.UID != b.UID
	}) {
		return true
	}
	return slices.ContainsFunc(arrays, func(o *v1alpha1.BatchJob) bool {
		return len(array.Rest(o, s.Cluster.SplitOff(o.Spec.JobID))) > 0
	})
}

// expects reports whether the agent may get another job: its pod is in the pool, or
// has been taken from it.
func (s *Server) expects(a *agent) bool {
	host := HostOf(a.job)
	return s.Pool != nil && (s.Pool.at(host) != nil ||
		slices.ContainsFunc(s.Cluster.InPods(host.JobID, host.Attempt), func(o *v1alpha1.BatchJob) bool { return o.Spec.JobID != a.JobID && active(o) }))
}

// wentOn reports whether the report is about a job that has ended and whose pod
// serves another job since: it was accepted, and the answer was lost.
func (s *Server) wentOn(a *agent, r *wire.Report) bool {
	if r.Kind != wire.ReportEnded || r.JobID == a.JobID {
		return false
	}
	b, ok := s.Cluster.Job(r.JobID)
	return ok && b.Status.Attempt == r.Attempt && !active(b) && HostOf(b) == (v1alpha1.PodsOf{JobID: a.host.JobID, Attempt: a.host.Attempt})
}

// recall confirms the offer, or withdraws it unless the job has ended and left its
// pods.
func (s *Server) recall(a *agent) {
	b, ok := s.Cluster.Job(a.JobID)
	if ok && b.Status.Pods != nil && b.Status.Attempt == a.Attempt && !active(b) {
		s.Pool.confirm(HostOf(b))
		return
	}
	s.Pool.withdraw(HostOf(a.job))
}

// active reports whether the job's agents have something to do.
func active(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
		return true
	}
	return false
}

// next answers an agent whose job has ended with the next job, if there is one for
// it soon.
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
