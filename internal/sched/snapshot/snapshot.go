// Package snapshot converts the cluster's objects to the immutable snapshot that
// the planner plans on, and the plan's decisions to allocations. Incremental is a
// snapshot that follows the changes of jobs and nodes. The package is pure:
// objects go in, values come out, and the time is an argument.
package snapshot

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/dependency"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/topology"
)

// Input is everything that a Snapshot depends on. The objects are only read.
type Input struct {
	Now        time.Time
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	Jobs       []*v1alpha1.BatchJob
	Partitions []*v1alpha1.Partition
	// Reservations are all that are stored; those that have ended are ignored.
	Reservations []*v1alpha1.Reservation
	Parameters   v1alpha1.ClusterSpec
	Policy       Policy
	// RefusingNodes are nodes (by their Kubernetes names) on which no job may
	// start before the instant, because their kubelet has just refused pods.
	RefusingNodes map[string]time.Time
	// Avoided are the nodes that have refused jobs, by the job's id.
	Avoided map[int64]Avoided
	// Unprepared is how many jobs' devices each node (by its Kubernetes name) has not prepared
	// in the last UnpreparedMemory.
	Unprepared map[string]int
	// NodePools are the pools whose nodes need not exist.
	NodePools []*v1alpha1.NodePool
	// Preemptors are the pending jobs for which running jobs were preempted.
	Preemptors map[int64]bool
}

// Snapshot is the cluster at one instant, in the planner's terms.
type Snapshot struct {
	backfill.Snapshot

	params       v1alpha1.ClusterSpec
	avoided      map[int64]Avoided
	unprepared   map[string]int
	nodes        []node // parallel to Snapshot.Nodes
	byName       map[string]int
	byObject     map[string]int  // by Kubernetes name
	byComing     map[string]int  // see addComing
	features     map[string]bool // that any node has
	network      *topology.Network
	partitions   []*Partition
	reservations map[string]*v1alpha1.Reservation // by object name
	magnetic     []*v1alpha1.Reservation
	jobs         map[int64]*v1alpha1.BatchJob
	infos        map[int64]JobInfo
	waiting      []int64 // see WaitingJobs; of ForQueries only
	dependencies *dependency.Index
	users        map[string]*v1alpha1.User
	userNumbers  map[string]int64
	qos          map[string]*v1alpha1.QOS
	policy       policy
	preemptors   map[int64]bool
	nodeSets     map[string][]nodeSet
	podNodes     map[podNodesKey]*backfill.NodeSet
	placedPods   map[types.UID]bool        // pods of workloads whose jobs hold their allocation
	pendingPods  map[types.UID]*corev1.Pod // pods of workloads whose jobs are pending
	hasTaints    bool                      // some node has a taint that pods may not tolerate
}

// JobInfo is what the snapshot has derived for a pending job.
type JobInfo struct {
	Partition  string
	TimeLimit  int32 // minutes, or job.Unlimited
	MaxSharers int32 // jobs that may share its CPUs; 0 or 1: none
	Priority   int64 // as squeue shows it

	choices *choices // nil: one choice of nodes, and no tasks
}

// choices is what the snapshot has derived for the few jobs with several choices of
// nodes, and for arrays.
type choices struct {
	// partitions and reservations are the partition of each further choice of nodes,
	// and the magnetic reservation of each choice (nil: none has one).
	partitions   []string
	reservations []string
	tasks        []int32
}

// ownChoices returns the choices of i, to be changed.
func (i *JobInfo) ownChoices() *choices {
	if i.choices == nil {
		i.choices = &choices{}
	}
	return i.choices
}

// Tasks returns the tasks of an array that may start, in the order in which they start.
func (i *JobInfo) Tasks() []int32 {
	if i.choices == nil {
		return nil
	}
	return i.choices.tasks
}

// magneticReservation returns the name of the magnetic reservation of a choice of
// nodes, or "".
func (i *JobInfo) magneticReservation(choice int) string {
	if i.choices == nil || choice >= len(i.choices.reservations) {
		return ""
	}
	return i.choices.reservations[choice]
}

// TimeLimitOf returns the time limit of a decision in minutes. It is less than
// TimeLimit if the job accepts less to start earlier (--time-min).
func (i *JobInfo) TimeLimitOf(d backfill.Decision) int32 {
	minutes := d.Duration / 60
	if d.Duration == backfill.Forever || i.TimeLimit > 0 && minutes >= int64(i.TimeLimit) {
		return i.TimeLimit
	}
	return int32(max(1, minutes))
}

// PartitionOf returns the partition of a decision.
func (i *JobInfo) PartitionOf(d backfill.Decision) string {
	if d.Choice == 0 {
		return i.Partition
	}
	return i.choices.partitions[d.Choice-1]
}

// New returns the snapshot of the input.
func New(in Input) *Snapshot {
	s := &Snapshot{
		params:       in.Parameters,
		byName:       map[string]int{},
		byObject:     map[string]int{},
		byComing:     map[string]int{},
		features:     map[string]bool{},
		reservations: map[string]*v1alpha1.Reservation{},
		jobs:         make(map[int64]*v1alpha1.BatchJob, len(in.Jobs)),
		infos:        make(map[int64]JobInfo, len(in.Jobs)),
		users:        make(map[string]*v1alpha1.User, len(in.Policy.Users)),
		userNumbers:  map[string]int64{},
		nodeSets:     map[string][]nodeSet{},
		podNodes:     map[podNodesKey]*backfill.NodeSet{},
	}
	s.Now, s.Overtime, s.Policy = in.Now.Unix(), overtime, backfill.DefaultPolicy()
	if n := in.Parameters.BackfillReservations; n != nil {
		s.Policy.Reservations = int(*n)
	}
	s.Policy.BackfillOrder = backfillOrders[in.Parameters.BackfillOrder]
	jobs := numbered(in.Jobs)
	for _, b := range jobs {
		s.jobs[b.Spec.JobID] = b
	}
	s.dependencies = dependency.NewIndex(jobs, s.jobs, s.Now)
	s.addNodes(&in)
	s.addPartitions(in.Partitions)
	s.addLicenses()
	s.addReservations(in.Reservations)
	for _, u := range in.Policy.Users {
		s.users[u.Name] = u
	}
	s.addRefusingNodes(in.RefusingNodes)
	s.avoided, s.unprepared = in.Avoided, in.Unprepared
	for _, b := range jobs {
		if b.HoldsAllocation() {
			s.Running = append(s.Running, s.buildRunning(b))
		}
	}
	s.addPolicy(&in)
	s.addPreemptors(in.Preemptors)
	s.Pending = make([]backfill.Job, 0, len(jobs)-len(s.Running))
	for _, b := range jobs {
		if b.AwaitsStart() {
			s.Pending = s.appendPending(s.Pending, b)
		}
	}
	s.Limits = s.policy.limits.Limits
	return s
}

// numbered returns the jobs that have a number, ordered by it, so that equal
// objects give equal snapshots.
func numbered(jobs []*v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	out := make([]*v1alpha1.BatchJob, 0, len(jobs))
	for _, b := range jobs {
		if b.Spec.JobID > 0 {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.BatchJob) int { return cmp.Compare(a.Spec.JobID, b.Spec.JobID) })
	return out
}

// Info returns what the snapshot has derived for a pending job.
func (s *Snapshot) Info(id int64) JobInfo { return s.infos[id] }

// WaitingJobs returns the numbers of the pending jobs that wait for nothing but nodes,
// limits or a release, in no order: not those that may not start yet, or depend on others.
func (s *Snapshot) WaitingJobs() []int64 {
	if s.waiting != nil {
		return s.waiting
	}
	ids := make([]int64, 0, len(s.Pending))
	seen := make(map[int64]bool, len(s.Pending))
	for i := range s.Pending {
		j := &s.Pending[i]
		if seen[j.ID] {
			continue // more tasks of an array
		}
		seen[j.ID] = true
		if j.Begin <= s.Now && !status.Reason(j.Blocked).IsDependency() {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// ForQueries returns the snapshot without what only plans need: the requests of the
// pending jobs, which are most of its memory.
func (s *Snapshot) ForQueries() *Snapshot {
	c := *s
	c.waiting, c.Pending = s.WaitingJobs(), nil
	return &c
}

// Job returns the job with the number, or nil.
func (s *Snapshot) Job(id int64) *v1alpha1.BatchJob { return s.jobs[id] }

// Time returns the instant of the snapshot in Unix seconds.
func (s *Snapshot) Time() int64 { return s.Now }

// Parameters returns the cluster's settings.
func (s *Snapshot) Parameters() *v1alpha1.ClusterSpec { return &s.params }

// QOS returns the QOS with the name, or nil.
func (s *Snapshot) QOS(name string) *v1alpha1.QOS { return s.qos[name] }

// Reservation returns the advance reservation with the object name, or nil.
func (s *Snapshot) Reservation(object string) *v1alpha1.Reservation { return s.reservations[object] }

// Outcomes returns what has become of each dependency of a pending job; see
// dependency.Index.
func (s *Snapshot) Outcomes(id int64) string { return s.dependencies.Outcomes(s.jobs[id]) }

// DelayEnd returns the end, in Unix seconds, of the first delay that a pending
// job's dependencies wait for; 0 if there is none.
func (s *Snapshot) DelayEnd(id int64) int64 { return s.dependencies.DelayEnd(s.jobs[id]) }

// CanFollow reports whether an Incremental of the same cluster can follow changes.
func (s *Snapshot) CanFollow() bool { return s.Incremental() }

// userNumber returns the number that stands for a user in this snapshot.
func (s *Snapshot) userNumber(name string) int64 {
	n, ok := s.userNumbers[name]
	if !ok {
		n = int64(len(s.userNumbers) + 1)
		s.userNumbers[name] = n
	}
	return n
}
