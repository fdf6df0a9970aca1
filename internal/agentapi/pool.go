package agentapi

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Linger is how long an agent waits at most for another job.
// Usually a plan decides sooner: see Settle.
const Linger = 10 * time.Second

// Pool knows the agents whose job is over and that could run another one of the
// same kin (control.Kin) at the same place. It only saves pods: what runs where is
// in the jobs' objects, and an agent that nobody here knows ends. Safe for
// concurrent use.
type Pool struct {
	now func() time.Time

	mu     sync.Mutex
	byHost map[v1alpha1.PodsOf]*Place
}

// Place is an agent that waits, or is about to.
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

// NewPool makes an empty pool.
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

// Lingers tells whether the agent of b's pods waits for another job.
func (p *Pool) Lingers(b *v1alpha1.BatchJob) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byHost[HostOf(b)]
	return x != nil && p.now().Before(x.until.Add(Linger))
}

// Take finds an agent of the kin that holds exactly what n says, in a pod of the
// mold; that is asked for if there is an agent otherwise. It must be given a job,
// or returned.
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

// same tells whether both name the same piece of the same node.
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

// Give hands a job to the agent at x. It does not wait.
func (p *Pool) Give(x *Place, b *v1alpha1.BatchJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHost[x.Host] == x {
		delete(p.byHost, x.Host)
	}
	x.next <- b
}

// Return lets the agent at x go.
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

// Settle lets the agents go whose places a plan knew to be free and gave to no
// job for them. planned is when the plan's snapshot was begun.
func (p *Pool) Settle(planned time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byHost {
		if !x.taken && !x.ready.IsZero() && x.ready.Before(planned) {
			p.drop(x)
		}
	}
}

// confirm says that the end of the job before is on record.
func (p *Pool) confirm(host v1alpha1.PodsOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.byHost[host]; x != nil {
		x.ready = p.now()
	}
}

// withdraw takes back what Offer did; false: the agent has been taken.
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

// at is the place of a waiting agent, or nil.
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
