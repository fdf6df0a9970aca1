package planner

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/query"
)

// changes collects the changes of the cluster until the next cycle. Safe for concurrent
// use.
type changes struct {
	wake chan struct{} // holds a value while a cycle is requested

	mu      sync.Mutex
	pending changeSet
}

// changeSet is what has changed since the last cycle.
type changeSet struct {
	all   bool // more than jobs and nodes
	jobs  map[int64]bool
	nodes map[string]bool // by their Kubernetes names
}

func (c *changeSet) isEmpty() bool { return !c.all && len(c.jobs)+len(c.nodes) == 0 }

// subscribe collects the changes of the stores of c.
func (c *changes) subscribe(cluster *control.Cluster) {
	cluster.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) {
		if now == nil {
			now = old
		}
		c.addJob(now.Spec.JobID)
	})
	cluster.Pods.Subscribe(func(old, now *corev1.Pod) {
		switch id, ok := query.PodChange(cluster, old, now); {
		case ok && id != 0:
			c.addJob(id)
		case ok:
			c.addAll()
		}
	})
	cluster.Nodes.Subscribe(func(old, now *corev1.Node) {
		if !query.NodeChanged(old, now) {
			return
		}
		if now == nil {
			now = old
		}
		c.addNode(now.Name)
	})
	cluster.NodePools.Subscribe(func(_, _ *v1alpha1.NodePool) { c.addAll() })
	cluster.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { c.addAll() })
	cluster.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { c.addAll() })
	cluster.Accounts.Subscribe(func(_, _ *v1alpha1.Account) { c.addAll() })
	cluster.QOS.Subscribe(func(_, _ *v1alpha1.QOS) { c.addAll() })
	cluster.Users.Subscribe(func(_, _ *v1alpha1.User) { c.addAll() })
	cluster.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { c.addAll() })
}

// requestCycle requests another cycle.
func (c *changes) requestCycle() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// addAll adds a change that requires a new snapshot.
func (c *changes) addAll() {
	c.mu.Lock()
	c.pending.all = true
	c.mu.Unlock()
	c.requestCycle()
}

// addJob adds a change of a job or of one of its pods.
func (c *changes) addJob(id int64) {
	c.mu.Lock()
	if c.pending.jobs == nil {
		c.pending.jobs = map[int64]bool{}
	}
	c.pending.jobs[id] = true
	c.mu.Unlock()
	c.requestCycle()
}

func (c *changes) addNode(name string) {
	c.mu.Lock()
	if c.pending.nodes == nil {
		c.pending.nodes = map[string]bool{}
	}
	c.pending.nodes[name] = true
	c.mu.Unlock()
	c.requestCycle()
}

// drain returns the changes since the last call. Later changes request another cycle.
func (c *changes) drain() changeSet {
	select {
	case <-c.wake:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.pending
	c.pending = changeSet{}
	return set
}
