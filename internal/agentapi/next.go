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
	if s.Pool == nil || a.templateHash == "" || r.Kind != wire.ReportEnded || r.OutOfMemory || r.Stopped ||
		b.Status.State != v1alpha1.StateRunning || len(b.Status.Allocation.Nodes) != 1 {
		return false
	}
	host, ok := s.Cluster.Job(b.RunsIn().JobID)
	if !ok || host.DeletionTimestamp != nil || host.RequeueRequested() {
		return false // its pods are deleted with it, or before it is queued again
	}
	if s.PodPerJob != nil && s.PodPerJob(b.Status.Allocation.Nodes[0].ObjectName()) {
		return false
	}
	reuseKey := control.ReuseKey(b, b.Status.Partition)
	if reuseKey == "" || s.podPerJob(b.Status.Partition) || !s.hasPending(b, reuseKey) {
		return false
	}
	s.Pool.Offer(b, reuseKey, a.templateHash)
	return true
}

// podPerJob reports whether the partition allows one job per pod only.
func (s *Server) podPerJob(partition string) bool {
	p, ok := s.Cluster.Partitions.Get(partition)
	return ok && p.Spec.PodPerJob
}

// hasPending reports whether a job other than b with this reuse key is pending.
func (s *Server) hasPending(b *v1alpha1.BatchJob, reuseKey string) bool {
	var arrays []*v1alpha1.BatchJob
	if s.Cluster.Jobs.Any(reuseKey, func(o *v1alpha1.BatchJob) bool {
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
	host := a.job.RunsIn()
	return s.Pool != nil && (s.Pool.at(host) != nil ||
		slices.ContainsFunc(s.Cluster.InPods(host.JobID, host.Attempt),
			func(o *v1alpha1.BatchJob) bool { return o.Spec.JobID != a.JobID && active(o) }))
}

// isRepeated reports whether the report is about a job that has ended and whose pod
// runs another job by now: the first report was accepted, and the answer was lost.
func (s *Server) isRepeated(a *agent, r *wire.Report) bool {
	if r.Kind != wire.ReportEnded || r.JobID == a.JobID {
		return false
	}
	b, ok := s.Cluster.Job(r.JobID)
	return ok && b.Status.Attempt == r.Attempt && !active(b) &&
		b.RunsIn() == (v1alpha1.PodsOf{JobID: a.host.JobID, Attempt: a.host.Attempt})
}

// recall confirms the offer, or withdraws it unless the job has ended and left its
// pods.
func (s *Server) recall(a *agent) {
	b, ok := s.Cluster.Job(a.JobID)
	if ok && b.Status.Pods != nil && b.Status.Attempt == a.Attempt && !active(b) {
		s.Pool.confirm(b.RunsIn())
		return
	}
	s.Pool.withdraw(a.job.RunsIn())
}

// active reports whether the job still needs its agents.
func active(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
		return true
	}
	return false
}

// next answers an agent whose job has ended with the next job, if it gets one within
// a short time.
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

// inPods returns the job that runs in the pods, or nil. It may be known although the agent
// was released: one of several writes failed, and the one of this job did not.
func (s *Server) inPods(host v1alpha1.PodsOf) *v1alpha1.BatchJob {
	for _, b := range s.Cluster.InPods(host.JobID, host.Attempt) {
		if active(b) {
			return b
		}
	}
	return nil
}

func (s *Server) nextFor(r *http.Request, a *agent, q *wire.NextQuery) (*v1alpha1.BatchJob, error) {
	host := v1alpha1.PodsOf{JobID: a.host.JobID, Attempt: a.host.Attempt}
	switch again := a.JobID == q.JobID && a.Attempt == q.Attempt; {
	case active(a.job) && !again:
		return a.job, nil // the answer was lost
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
				b = s.inPods(host)
			}
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
