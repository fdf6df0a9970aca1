package simulation

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/sched/fence"
)

// leaseDuration is the duration of the leader's lease. A process that cannot renew it
// writes nothing in the last tenth: until then, what it has sent has arrived.
const leaseDuration = 10 * time.Second

// lease is that of a process.
type lease struct {
	lost    bool      // it cannot be renewed
	expires time.Time // if it is lost
	frozen  bool      // the process is stopped: it receives nothing
	ends    time.Time // when the process has noticed, and ends
}

// mayWrite reports whether the process certainly holds its lease. Any goroutine may call
// it.
func (p *process) mayWrite() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lease.lost || time.Now().Before(p.lease.expires.Add(-leaseDuration/10))
}

// requestKey is the key of a context's request.
type requestKey struct{}

// fenced returns a transport that sends the requests of the process through the fence.
func (p *process) fenced() http.RoundTripper {
	return &fence.Transport{Next: transport(p.send), Holds: p.mayWrite}
}

// transport is a function that sends requests.
type transport func(*request)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t(r.Context().Value(requestKey{}).(*request)) //nolint:forcetypeassert // call has set it
	return &http.Response{Body: http.NoBody}, nil
}

// call sends a request with a method of HTTP and waits for its answer, or for the end of
// the process.
func (p *process) call(
	ctx context.Context, method, what string, perform func() (client.Object, error),
) (client.Object, error) {
	caller, _ := ctx.Value(callerKey{}).(string)
	r := &request{process: p, what: caller + what, write: method != http.MethodGet, perform: perform,
		answer: make(chan answer, 1)}
	h, err := http.NewRequestWithContext(context.WithValue(p.ctx, requestKey{}, r), method, "http://api", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := p.transport.RoundTrip(h)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // it is empty
	select {
	case a := <-r.answer:
		return a.object, a.err
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// send sends a request.
func (p *process) send(r *request) {
	p.mu.Lock()
	p.requests = append(p.requests, r)
	p.mu.Unlock()
	p.sim.wakeUp()
}

// loseLease takes the lease from the leader. The leader continues for a while, even when another
// process leads, or it is stopped until then.
func (s *simulation) loseLease() bool {
	p := s.leader
	if p == nil {
		return false
	}
	now := time.Now()
	s.restart = now.Add(leaseDuration + s.between(0, 20*time.Second))
	p.mu.Lock()
	p.lease = lease{
		lost: true, expires: now.Add(leaseDuration), frozen: s.chance(2),
		ends: s.restart.Add(s.between(0, 20*time.Second)),
	}
	p.mu.Unlock()
	s.leader = nil
	s.former = append(s.former, p)
	return true
}

// lead starts a process that leads. What the former ones have sent has arrived, or will
// never arrive.
func (s *simulation) lead() {
	for _, p := range s.former {
		for _, r := range p.pending() {
			if !r.write {
				continue
			}
			if s.chance(2) {
				_, _ = r.perform()
			}
			p.take(r)
			r.answer <- answer{err: errLost}
		}
		p.lease.frozen = false
	}
	s.leader = s.start()
}

// endFormer ends the processes that have noticed that they lost their lease.
func (s *simulation) endFormer() {
	s.former = slices.DeleteFunc(s.former, func(p *process) bool {
		over := !time.Now().Before(p.lease.ends)
		if over {
			p.crash()
		}
		return over
	})
}

// reachable returns the processes that requests of agents can reach.
func (s *simulation) reachable() (all []*process) {
	if s.leader != nil {
		all = append(all, s.leader)
	}
	for _, p := range s.former {
		if !p.lease.frozen {
			all = append(all, p)
		}
	}
	return all
}

// performed checks that the process that wrote held its lease.
func (t *truth) performed(r *request) {
	p, s := r.process, t.sim
	held := p == s.leader || s.leader == nil && p.lease.lost && time.Now().Before(p.lease.expires)
	if r.write && !held {
		t.violate("process %d wrote without its lease: %s", p.number, r.what)
	}
}
