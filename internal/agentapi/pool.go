package agentapi

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// maxWait is how long an agent waits at most for another job. Usually a plan decides
// sooner (ReleaseUnused).
const maxWait = 10 * time.Second

// Pool holds the agents whose job has ended and that could run another job with the
// same reuse key (control.ReuseKey) at the same place. It only saves pods: the jobs'
// objects say which job runs where, and an agent that is not in the pool exits. Safe
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

	reuseKey     string
	templateHash string // of its pod (wire.AnnotationPodTemplateHash)
	node         v1alpha1.NodeAllocation
	until        time.Time
	ready        time.Time // when the end of its job was recorded; zero: not yet
	reserved     bool
	next         chan *v1alpha1.BatchJob // closed: there is none
}

// NewPool returns an empty pool.
func NewPool(now func() time.Time) *Pool {
	return &Pool{now: now, byHost: map[v1alpha1.PodsOf]*Place{}}
}

// Offer adds the agent of the pods of b, a job of one node whose end was reported.
func (p *Pool) Offer(b *v1alpha1.BatchJob, reuseKey, templateHash string) {
	host := b.RunsIn()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHost[host] != nil {
		return // the report came twice
	}
	node := b.Status.Allocation.Nodes[0]
	p.byHost[host] = &Place{
		Host: host, Address: node.Address, reuseKey: reuseKey, templateHash: templateHash,
		node: node, until: p.now().Add(maxWait), next: make(chan *v1alpha1.BatchJob, 1),
	}
}

// IsWaiting reports whether the agent of b's pods waits for another job.
func (p *Pool) IsWaiting(b *v1alpha1.BatchJob) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byHost[b.RunsIn()]
	return x != nil && p.now().Before(x.until.Add(maxWait))
}

// Reserve returns an agent with the reuse key and exactly the allocation n, in a pod
// with that template hash, or nil. It calls templateHash only if there is such an
// agent. The caller must assign a job to the agent (Assign) or release it (Release).
func (p *Pool) Reserve(reuseKey string, n *v1alpha1.NodeAllocation, templateHash func() string) *Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byHost {
		if x.reuseKey == reuseKey && !x.reserved && p.now().Before(x.until) && same(&x.node, n) &&
			x.templateHash == templateHash() {
			x.reserved = true
			return x
		}
	}
	return nil
}

// same reports whether a pod with the allocation a can run a job with the planned allocation b:
// they are the same resources of the same node. The kubelet's CPU manager gives the pod CPUs of
// its own choice, whatever the plan says.
func same(a, b *v1alpha1.NodeAllocation) bool {
	if a.Name != b.Name || a.Node != b.Node || a.CPUs != b.CPUs || a.CPUIDs != b.CPUIDs && !a.PodCPUs ||
		a.Memory != b.Memory || len(a.GRES) != len(b.GRES) {
		return false
	}
	for i := range a.GRES {
		if a.GRES[i] != b.GRES[i] {
			return false
		}
	}
	return true
}

// Record sets what is known of the place in the allocation of a job that will run there.
func (x *Place) Record(n *v1alpha1.NodeAllocation) {
	n.Address = x.Address
	if x.node.PodCPUs {
		n.CPUIDs, n.PodCPUs = x.node.CPUIDs, true
	}
}

// Assign sends a job to the reserved agent at x. It does not wait.
func (p *Pool) Assign(x *Place, b *v1alpha1.BatchJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHost[x.Host] == x {
		delete(p.byHost, x.Host)
	}
	x.next <- b
}

// Release lets the reserved agent at x exit.
func (p *Pool) Release(x *Place) {
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

// ReleaseUnused lets the agents exit whose places were free in a plan that used them
// for no job. planned is when the plan's snapshot was started.
func (p *Pool) ReleaseUnused(planned time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byHost {
		if !x.reserved && !x.ready.IsZero() && x.ready.Before(planned) {
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

// withdraw undoes Offer; false: the agent is reserved.
func (p *Pool) withdraw(host v1alpha1.PodsOf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byHost[host]
	if x == nil {
		return true
	}
	if x.reserved {
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
