package agentapi

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Linger is how long an agent waits at most for another job. Usually a plan decides
// sooner: see Settle.
const Linger = 10 * time.Second

// Pool holds the agents whose job has ended and that could run another job with the
// same reuse key (control.Kin) at the same place. It only saves pods: what runs
// where is in the jobs' objects, and an agent that is not in the pool ends. Safe
// for concurrent use.
type Pool struct {
	now func() time.Time

	mu     sync.Mutex
	byHost map[v1alpha1.PodsOf]*Place
}

// Place is an agent that waits for a job, or is about to.
type Place struct {
	Host    v1alpha1.PodsOf
	Address string // where the agent takes connections

	kin   string
	mold  string // what its pod is made of (wire.AnnotationMold)
	node  v1alpha1.NodeAllocation
	until time.Time
	ready time.Time // when its job's end was on record; zero: not yet
	taken bool
	next  chan *v1alpha1.BatchJob // closed: there is none
}

// NewPool returns an empty pool.
func NewPool(now func() time.Time) *Pool {
	return &Pool{now: now, byHost: map[v1alpha1.PodsOf]*Place{}}
}

// Offer adds the agent of the pods of b, a job of one node whose end was reported.
func (p *Pool) Offer(b *v1alpha1.BatchJob, kin, mold string) {
	host := HostOf(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHost[host] != nil {
		return // the report came twice
	}
	node := b.Status.Allocation.Nodes[0]
	p.byHost[host] = &Place{
		Host: host, Address: node.Address, kin: kin, mold: mold, node: node, until: p.now().Add(Linger),
		next: make(chan *v1alpha1.BatchJob, 1),
	}
}

// Lingers reports whether the agent of b's pods waits for another job.
func (p *Pool) Lingers(b *v1alpha1.BatchJob) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byHost[HostOf(b)]
	return x != nil && p.now().Before(x.until.Add(Linger))
}

// Take removes and returns an agent with the reuse key that holds exactly what n
// says, in a pod with that template hash; mold is called only if there is such an
// agent. The agent must get a job by Give, or be returned by Return.
func (p *Pool) Take(kin string, n *v1alpha1.NodeAllocation, mold func() string) (*Place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byHost {
		if x.kin == kin && !x.taken && p.now().Before(x.until) && same(&x.node, n) && x.mold == mold() {
			x.taken = true
			return x, true
		}
	}
	return nil, false
}

// same reports whether both allocations are the same resources of the same node.
func same(a, b *v1alpha1.NodeAllocation) bool {
	if a.Name != b.Name || a.Node != b.Node || a.CPUs != b.CPUs || a.CPUIDs != b.CPUIDs || a.Memory != b.Memory || len(a.GRES) != len(b.GRES) {
		return false
	}
	for i := range a.GRES {
		if a.GRES[i] != b.GRES[i] {
			return false
		}
	}
	return true
}

// Give assigns a job to the agent at x. It does not wait.
func (p *Pool) Give(x *Place, b *v1alpha1.BatchJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHost[x.Host] == x {
		delete(p.byHost, x.Host)
	}
	x.next <- b
}

// Return releases the agent at x.
func (p *Pool) Return(x *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(x)
}

func (p *Pool) drop(x *Place) {
	if p.byHost[x.Host] == x {
		delete(p.byHost, x.Host)
	}
	close(x.next)
}

// Settle releases the agents whose places a plan knew to be free and gave to no
// job. planned is when the plan's snapshot was started.
func (p *Pool) Settle(planned time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byHost {
		if !x.taken && !x.ready.IsZero() && x.ready.Before(planned) {
			p.drop(x)
		}
	}
}

// confirm notes that the end of the previous job is recorded.
func (p *Pool) confirm(host v1alpha1.PodsOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.byHost[host]; x != nil {
		x.ready = p.now()
	}
}

// withdraw undoes Offer; false: the agent has been taken.
func (p *Pool) withdraw(host v1alpha1.PodsOf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byHost[host]
	if x == nil {
		return true
	}
	if x.taken {
		return false
	}
	p.drop(x)
	return true
}

// at returns the place of a waiting agent, or nil.
func (p *Pool) at(host v1alpha1.PodsOf) *Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byHost[host]
}

// HostOf names the pods that the job's present attempt runs in.
func HostOf(b *v1alpha1.BatchJob) v1alpha1.PodsOf {
	if b.Status.Pods != nil {
		return *b.Status.Pods
	}
	return v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
}
