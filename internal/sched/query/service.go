// Package query answers the questions of the queue API about the cluster: the rows
// of nodes, partitions, priorities and shares, the planned starts of pending jobs,
// whether a submitted job could ever run, and when it would start.
//
// In the leader it answers from the newest plan, which the planner publishes. In a
// process that only reads, no plan is published, and it answers from snapshots of
// its own.
package query

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/clusterview"
	"github.com/berth-hpc/berth/internal/sched/feasibility"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// Service answers queries. Safe for concurrent use.
type Service struct {
	Source

	newest     atomic.Pointer[Plan]
	lastChange atomic.Int64 // when what answers depend on last changed, in Unix nanoseconds; 0: never

	// Used in a process without a planner: the snapshot that answers queries, and whether
	// the cluster has changed since it was made.
	observing  sync.Mutex
	observed   *snapshot.Snapshot
	observedAt time.Time
	changed    atomic.Bool

	explaining sync.Mutex // serializes Priorities, which uses caches of the snapshot

	feasibility sync.Mutex         // serializes Feasible
	nodesOnly   *snapshot.Snapshot // of nodes, partitions and QOS, to check submitted jobs
	outdated    atomic.Bool        // nodesOnly is out of date

	forecasts forecasts
}

// New returns a Service. It subscribes to the stores of c, which must not be filled
// yet.
func New(c *control.Cluster, now func() time.Time) *Service {
	s := &Service{Source: Source{cluster: c, now: now}}
	changeShape := func() { s.noteChange(); s.outdated.Store(true) }
	c.Jobs.Subscribe(func(_, _ *v1alpha1.BatchJob) { s.noteChange() })
	c.Pods.Subscribe(func(old, now *corev1.Pod) {
		if _, ok := PodChange(c, old, now); ok {
			s.noteChange()
		}
	})
	c.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { s.noteChange() })
	c.Accounts.Subscribe(func(_, _ *v1alpha1.Account) { s.noteChange() })
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { s.noteChange() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { changeShape() })
	c.QOS.Subscribe(func(_, _ *v1alpha1.QOS) { changeShape() })
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { changeShape() })
	c.NodePools.Subscribe(func(_, _ *v1alpha1.NodePool) { changeShape() })
	c.Nodes.Subscribe(func(old, now *corev1.Node) {
		if NodeChanged(old, now) {
			changeShape()
		}
	})
	return s
}

// noteChange notes that something has changed, which is in the stores already.
func (s *Service) noteChange() {
	s.changed.Store(true)
	at := s.now().UnixNano()
	for last := s.lastChange.Load(); at > last && !s.lastChange.CompareAndSwap(last, at); {
		last = s.lastChange.Load()
	}
}

// observeInterval is how long a snapshot answers in a process without a planner while
// nothing changes.
const observeInterval = time.Second

// snapshot returns the snapshot of the newest plan or, if there is none, a snapshot
// of the cluster as it is.
func (s *Service) snapshot() *snapshot.Snapshot {
	if p := s.newest.Load(); p != nil {
		return p.snapshot
	}
	s.observing.Lock()
	defer s.observing.Unlock()
	now := s.now()
	changed := s.changed.Swap(false)
	if changed || s.observed == nil || now.Sub(s.observedAt) >= observeInterval {
		s.observed, s.observedAt = snapshot.New(s.Input(now)).ForQueries(), now
	}
	return s.observed
}

// Shows reports whether answers include every change that this process had seen at the instant.
func (s *Service) Shows(at time.Time) bool {
	p := s.newest.Load()
	return p == nil || !p.at.Before(at) || p.at.UnixNano() >= s.lastChange.Load()
}

// NodesView returns a row for every node of the pool, ordered by name.
func (s *Service) NodesView() []status.Node {
	snap, now := s.snapshot(), s.now()
	rows := clusterview.Nodes(snap)
	clusterview.MarkReserved(snap, rows, now.Unix())
	if p := s.newest.Load(); p != nil {
		clusterview.MarkPlanned(rows, p.nodeStarts(), now)
	}
	for i := range rows {
		rows[i].Version = build.Slurm // commands and agents behave as those of this version
	}
	return rows
}

// PartitionsView returns a row for every partition, ordered by name.
func (s *Service) PartitionsView() []status.Partition { return clusterview.Partitions(s.snapshot()) }

// TopologyView returns the switches above the nodes, and what is wrong with them.
func (s *Service) TopologyView() *status.Topology { return clusterview.Topology(s.snapshot()) }

// PrioritiesView returns the terms of the priority of every pending job.
func (s *Service) PrioritiesView() *status.PriorityList {
	s.explaining.Lock()
	defer s.explaining.Unlock()
	return clusterview.Priorities(s.snapshot())
}

// SharesView returns the tree of accounts with what each association has used.
func (s *Service) SharesView() *status.ShareList {
	snap := s.snapshot()
	return clusterview.Shares(snap, s.qosUsage(snap))
}

// Feasible returns why the job could never run, as one of package feasibility's errors,
// or nil.
func (s *Service) Feasible(b *v1alpha1.BatchJob) error { return s.feasibleUpTo(feasibility.Shape, b) }

// FeasibleGRES is Feasible for the names of generic resources only.
func (s *Service) FeasibleGRES(b *v1alpha1.BatchJob) error {
	s.feasibility.Lock()
	defer s.feasibility.Unlock()
	return feasibility.CheckGRES(s.emptyCluster(), &b.Spec.Job)
}

// FeasibleNodes is Feasible for the names of the required nodes only.
func (s *Service) FeasibleNodes(b *v1alpha1.BatchJob) error {
	s.feasibility.Lock()
	defer s.feasibility.Unlock()
	return feasibility.CheckNodes(s.emptyCluster(), &b.Spec.Job)
}

// FeasibleSize is Feasible for the required nodes and the numbers of nodes and CPUs only.
func (s *Service) FeasibleSize(b *v1alpha1.BatchJob) error {
	return s.feasibleUpTo(feasibility.Size, b)
}

// FeasibleExclusions is FeasibleSize that also checks that the excluded nodes exist.
func (s *Service) FeasibleExclusions(b *v1alpha1.BatchJob) error {
	return s.feasibleUpTo(feasibility.Exclusions, b)
}

// FeasibleNames is FeasibleExclusions that also checks features and generic resources.
func (s *Service) FeasibleNames(b *v1alpha1.BatchJob) error {
	return s.feasibleUpTo(feasibility.Names, b)
}

func (s *Service) feasibleUpTo(stage feasibility.Stage, b *v1alpha1.BatchJob) error {
	s.feasibility.Lock()
	defer s.feasibility.Unlock()
	return feasibility.CheckUpTo(stage, s.emptyCluster(), b)
}

// emptyCluster returns a snapshot of the nodes without jobs. feasibility is locked.
func (s *Service) emptyCluster() *snapshot.Snapshot {
	if s.outdated.Swap(false) || s.nodesOnly == nil {
		s.nodesOnly = snapshot.New(snapshot.Input{
			Now: s.now(), Nodes: s.cluster.Nodes.List(), NodePools: s.cluster.NodePools.List(),
			Partitions: s.cluster.Partitions.List(),
			Parameters: s.cluster.Parameters(), Policy: snapshot.Policy{QOS: s.cluster.QOS.List()},
		})
	}
	return s.nodesOnly
}
