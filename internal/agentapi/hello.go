package agentapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// gangs are the gangs of which not all agents have reported.
type gangs struct {
	mu   sync.Mutex
	open map[attempt]*gang
}

// gang is one attempt whose agents report one by one.
type gang struct {
	mu      sync.Mutex
	agents  []wire.AgentInfo
	missing int
	calling bool
	done    chan struct{}      // closed when job or over is set
	job     *v1alpha1.BatchJob // as the Keeper wrote it
	over    bool
}

func (g *gangs) get(at attempt, size int) *gang {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.open[at]
	if x == nil {
		x = &gang{agents: make([]wire.AgentInfo, size), missing: size, done: make(chan struct{})}
		g.open[at] = x
	}
	return x
}

// drop ends the wait of everybody in the gang.
func (g *gangs) drop(at attempt) {
	g.mu.Lock()
	x := g.open[at]
	delete(g.open, at)
	g.mu.Unlock()
	if x != nil {
		x.finish(nil)
	}
}

// finish sets the outcome, once; nil: the attempt is over.
func (x *gang) finish(job *v1alpha1.BatchJob) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.job == nil && !x.over {
		x.job, x.over = job, job == nil
		close(x.done)
	}
}

// join adds an agent; first reports whether it was not known. call is true for the agent that
// is to call the Keeper: the gang is complete, and no other agent calls it.
func (x *gang) join(index int, a wire.AgentInfo) (call, first bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.agents[index].Address {
	case a.Address:
	case "":
		x.agents[index] = a
		x.missing--
		first = true
	default:
		return false, false, &failure{http.StatusConflict, fmt.Sprintf("another agent has reported as node %d", index)}
	}
	if x.missing > 0 || x.calling || x.job != nil || x.over {
		return false, first, nil
	}
	x.calling = true
	return true, first, nil
}

func (s *Server) hello(w http.ResponseWriter, r *http.Request) {
	s.hold(w)
	a, err := s.identify(r)
	if err != nil {
		fail(w, err)
		return
	}
	var h wire.Hello
	if err := receive(w, r, &h); err != nil {
		fail(w, err)
		return
	}
	job, err := s.gather(r.Context(), a, &h)
	if err != nil {
		fail(w, err)
		return
	}
	if err := s.together(r.Context(), job); err != nil {
		fail(w, err)
		return
	}
	welcome, err := s.welcome(r.Context(), a, job)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, welcome)
}

// gather waits until every agent of the attempt has reported and the Keeper has
// recorded it. It returns the job as written then.
func (s *Server) gather(ctx context.Context, a *agent, h *wire.Hello) (*v1alpha1.BatchJob, error) {
	if h.JobID != a.JobID || h.Attempt != a.Attempt || int(h.Index) != a.Index {
		return nil, &failure{http.StatusConflict, fmt.Sprintf(
			"the pod is node %d of attempt %d of job %d, not what its agent says", a.Index, a.Attempt, a.JobID)}
	}
	if _, port, err := net.SplitHostPort(h.Address); err != nil || port == "" || len(h.Address) > 300 {
		return nil, &failure{http.StatusBadRequest, fmt.Sprintf("%q is not host:port", h.Address)}
	}
	if len(h.CPUs) > maxCPUList {
		return nil, &failure{http.StatusBadRequest, "the list of CPUs is too long"}
	}
	if started(a.job) {
		return s.repeat(a, h)
	}
	if a.job.Status.State != v1alpha1.StateConfiguring && !pending(a.job) {
		return nil, errOver
	}
	g := s.gangs.get(a.attempt(), len(a.job.Status.Allocation.Nodes))
	if known, ok := s.Cluster.Job(a.JobID); !ok || known.Status.Attempt > a.Attempt {
		s.gangs.drop(a.attempt()) // it has just ended
	}
	call, first, err := g.join(a.Index, wire.AgentInfo{Address: h.Address, CPUs: h.CPUs})
	if err != nil {
		return nil, err
	}
	if first {
		s.Joined(a.job, a.Index)
	}
	if call {
		go s.ready(a.attempt(), g)
	}
	timeout := time.NewTimer(s.Poll)
	defer timeout.Stop()
	select {
	case <-g.done:
	case <-timeout.C:
		return nil, &failure{http.StatusServiceUnavailable, "waiting for the job's other nodes"}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if g.job == nil {
		return nil, errOver
	}
	return g.job, nil
}

// maxCPUList limits the list of CPUs that an agent reports, in bytes.
const maxCPUList = 4096

// repeat answers an agent whose gang was complete before: the first answer was lost.
func (s *Server) repeat(a *agent, h *wire.Hello) (*v1alpha1.BatchJob, error) {
	if a.job.Status.Allocation.Nodes[a.Index].Address != h.Address {
		return nil, &failure{http.StatusConflict, fmt.Sprintf("another agent has reported as node %d", a.Index)}
	}
	return a.job, nil
}

func pending(b *v1alpha1.BatchJob) bool {
	return b.Status.State == "" || b.Status.State == v1alpha1.StatePending
}

// started reports whether the attempt's gang is recorded as complete.
func started(b *v1alpha1.BatchJob) bool {
	if b.Status.StartTime == nil || b.Status.State != v1alpha1.StateRunning &&
		b.Status.State != v1alpha1.StateSuspended {
		return false
	}
	for i := range b.Status.Allocation.Nodes {
		if b.Status.Allocation.Nodes[i].Address == "" {
			return false
		}
	}
	return true
}

// ready calls the Keeper until the gang is recorded or the attempt is over. It
// depends on no agent's connection.
func (s *Server) ready(at attempt, g *gang) {
	for {
		job, err := s.notifyKeeper(at, g)
		switch {
		case err == nil && job != nil:
			g.finish(job)
			s.gangs.forget(at, g)
			return
		case err != nil && s.Gone(err):
			s.gangs.drop(at)
			return
		}
		s.Log.Error("the gang is complete, but could not be recorded", "job", at.id, "attempt", at.n, "error", err)
		pause := time.NewTimer(retryPause)
		select {
		case <-pause.C:
		case <-g.done: // the attempt ended meanwhile
			pause.Stop()
			return
		}
	}
}

func (s *Server) notifyKeeper(at attempt, g *gang) (*v1alpha1.BatchJob, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Keeper.GangReady(ctx, at.id, at.n, g.agents)
}

// retryPause is the time between two calls of the Keeper for one gang.
const retryPause = 500 * time.Millisecond

// forget removes a complete gang; later agents find the job started.
func (g *gangs) forget(at attempt, x *gang) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[at] == x {
		delete(g.open, at)
	}
}
