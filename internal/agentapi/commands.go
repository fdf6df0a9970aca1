package agentapi

import (
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// maxCommands bounds the commands held for one agent; the oldest signals are
// dropped first.
const maxCommands = 256

// boxes holds the commands for the batch hosts.
type boxes struct {
	now func() time.Time

	mu   sync.Mutex
	open map[attempt]*box
}

// box holds the commands for one attempt. Sequence numbers keep increasing across
// restarts of this process, because they start at the clock.
type box struct {
	items      []wire.Command
	last       int64
	terminated bool          // a terminate was put in, in this process
	told       told          // of the job's state, by this process
	changed    chan struct{} // closed and replaced at every change
}

// told is what an agent has to be informed of while its job runs.
type told struct {
	stopped bool
	resumed int64 // seconds it was suspended before
	limit   int64 // end of the time limit, Unix seconds; 0: none
}

// get returns the attempt's box; the caller holds the lock.
func (b *boxes) get(at attempt) *box {
	x := b.open[at]
	if x == nil {
		x = &box{changed: make(chan struct{})}
		b.open[at] = x
	}
	return x
}

// put adds a command.
func (b *boxes) put(at attempt, c wire.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.get(at)
	if c.Kind == wire.CommandTerminate {
		if slices.ContainsFunc(x.items, func(o wire.Command) bool { return o.Kind == c.Kind && o.Reason == c.Reason }) {
			return
		}
		x.terminated = true
	}
	c.Seq = max(x.last+1, b.now().UnixMicro())
	x.last = c.Seq
	x.items = append(x.items, c)
	if len(x.items) > maxCommands {
		old := slices.IndexFunc(x.items, func(o wire.Command) bool { return o.Kind != wire.CommandTerminate })
		x.items = slices.Delete(x.items, max(old, 0), max(old, 0)+1)
	}
	x.notify()
}

// inform adds commands for what the agent has not been informed of. A new process
// informs it again, which does no harm.
func (b *boxes) inform(at attempt, now told) {
	b.mu.Lock()
	was := b.get(at).told
	b.get(at).told = now
	b.mu.Unlock()
	if now.limit != was.limit {
		b.put(at, wire.Command{Kind: wire.CommandLimit, EndTime: now.limit})
	}
	if now.stopped != was.stopped || now.resumed != was.resumed {
		signal := int32(syscall.SIGCONT)
		if now.stopped {
			signal = int32(syscall.SIGSTOP)
		}
		b.put(at, wire.Command{Kind: wire.CommandSignal, Signal: signal, Full: true, Every: true})
	}
}

func (x *box) notify() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// after drops the commands that the agent has seen and returns the rest, whether a
// terminate was ever added, and a channel that is closed at the next change.
func (b *boxes) after(at attempt, seq int64) (items []wire.Command, terminated bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.get(at)
	x.items = slices.DeleteFunc(x.items, func(c wire.Command) bool { return c.Seq <= seq })
	x.last = max(x.last, seq)
	return slices.Clone(x.items), x.terminated, x.changed
}

// wake makes a waiting request check again.
func (b *boxes) wake(at attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.open[at]; x != nil {
		x.notify()
	}
}

// drop forgets the attempt.
func (b *boxes) drop(at attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.open[at]; x != nil {
		delete(b.open, at)
		x.notify()
	}
}

// Send queues c for the attempt's batch host; Seq is set here. It does not wait. A
// repeated terminate is queued once. A command for an attempt that is not the
// current one is dropped.
func (s *Server) Send(jobID int64, n int32, c wire.Command) {
	b, ok := s.Cluster.Job(jobID)
	if !ok || b.Status.Attempt != n || b.Status.Allocation == nil {
		return
	}
	s.boxes.put(attempt{jobID, n}, c)
}

func (s *Server) commands(w http.ResponseWriter, r *http.Request) {
	s.hold(w)
	a, err := s.batchHost(r)
	if err != nil {
		fail(w, err)
		return
	}
	var q wire.CommandQuery
	if err := receive(w, r, &q); err != nil {
		fail(w, err)
		return
	}
	timeout := time.NewTimer(s.Poll)
	defer timeout.Stop()
	for {
		items, changed, err := s.pendingCommands(a.attempt(), q.After)
		if err != nil {
			fail(w, err)
			return
		}
		if len(items) > 0 {
			send(w, wire.Commands{Items: items})
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			send(w, wire.Commands{Items: []wire.Command{}})
			return
		case <-r.Context().Done():
			return
		}
	}
}

// pendingCommands returns the commands after seq. A job that is to end gets a
// terminate even if none was sent: the process that decided it may have died since.
func (s *Server) pendingCommands(at attempt, seq int64) ([]wire.Command, <-chan struct{}, error) {
	b, ok := s.Cluster.Job(at.id)
	if !ok || b.Status.Attempt > at.n || b.Status.Attempt == at.n && b.Status.Allocation == nil {
		return nil, nil, errOver
	}
	if b.Status.Attempt == at.n {
		s.boxes.inform(at, state(b))
	}
	items, terminated, changed := s.boxes.after(at, seq)
	if reason, now := ending(b); now && !terminated && b.Status.Attempt == at.n {
		s.boxes.put(at, wire.Command{Kind: wire.CommandTerminate, Reason: reason})
		items, _, changed = s.boxes.after(at, seq)
	}
	return items, changed, nil
}

// state returns what the agent of a job has to be informed of while it runs.
func state(b *v1alpha1.BatchJob) told {
	t := told{stopped: b.Status.State == v1alpha1.StateSuspended, resumed: b.Status.Suspended}
	if end, ok := b.Status.LimitEnds(); ok && b.Spec.Job.Time.Signal != 0 {
		t.limit = end.Unix()
	}
	return t
}

// batchHost returns the agent that sent the request; agents other than the batch
// host's are refused.
func (s *Server) batchHost(r *http.Request) (*agent, error) {
	a, err := s.identify(r)
	if err != nil {
		return nil, err
	}
	if a.Index != 0 {
		return nil, errNotFirst
	}
	return a, nil
}

var errNotFirst = &failure{http.StatusForbidden, "only the batch host's agent may do this"}

// ending reports whether the job's processes are to end, and why. A request to end
// a job, or its limit, counts only when the keeper has written what becomes of the
// job: an agent informed earlier could report the end before that, and a job to be
// requeued would have failed.
func ending(b *v1alpha1.BatchJob) (reason string, ending bool) {
	switch final := b.Status.Final; {
	case final == v1alpha1.StatePending && (b.Spec.Cancel != nil || b.DeletionTimestamp != nil):
		return v1alpha1.StateCancelled, true
	case final == v1alpha1.StatePending && b.Status.Preempt != nil:
		return v1alpha1.StatePreempted, true
	case final == v1alpha1.StatePending:
		return "REQUEUE", true
	default:
		return final, imposed[final]
	}
}

// imposed are the outcomes that do not come from the job itself.
var imposed = map[string]bool{
	v1alpha1.StateCancelled: true, v1alpha1.StateTimeout: true, v1alpha1.StateDeadline: true,
	v1alpha1.StatePreempted: true, v1alpha1.StateNodeFail: true,
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	a, err := s.identify(r)
	if err != nil {
		fail(w, err)
		return
	}
	var report wire.Report
	if err := receive(w, r, &report); err != nil {
		fail(w, err)
		return
	}
	boundReport(&report)
	ofNode := report.Kind == wire.ReportProlog || report.Kind == wire.ReportEpilog
	if a.Index != 0 && !ofNode {
		fail(w, errNotFirst)
		return
	}
	if s.isRepeated(a, &report) {
		send(w, wire.ReportAnswer{Next: true})
		return
	}
	if report.JobID != a.JobID || report.Attempt != a.Attempt || len(report.Steps) > maxSteps {
		fail(w, &failure{http.StatusConflict, "the report is of another job"})
		return
	}
	if ofNode {
		if err := s.scriptFailed(r.Context(), a, &report); err != nil {
			fail(w, err)
			return
		}
		send(w, struct{}{})
		return
	}
	s.reportSteps(a, report.Steps)
	offered := s.offer(a, &report)
	err = s.Keeper.Report(r.Context(), a.JobID, a.Attempt, report)
	if offered {
		s.recall(a)
	}
	if err != nil {
		if s.Gone(err) {
			err = errOver
		}
		fail(w, err)
		return
	}
	send(w, wire.ReportAnswer{Next: s.expects(a)})
}
