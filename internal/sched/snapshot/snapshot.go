// Package snapshot turns the cluster's objects into what the planner plans
// from, the plan's decisions into allocations, and both into the rows that
// sinfo shows. It is pure: objects in, values out; the clock is an argument.
package snapshot

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// Input is everything a View is made of. The objects are only read.
type Input struct {
	Now        time.Time
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	Jobs       []*v1alpha1.BatchJob
	Partitions []*v1alpha1.Partition
	// Reservations as they are stored; those that are over mean nothing.
	Reservations []*v1alpha1.Reservation
	Parameters   v1alpha1.ClusterSpec
	Policy       Policy
	// Avoid are nodes (by their Kubernetes names) on which nothing is to start
	// before the instant, because their kubelet has just refused pods.
	Avoid map[string]time.Time
	// Expected are jobs for which others were made to go.
	Expected map[int64]bool
}

// View is the cluster at one instant, in the planner's terms.
type View struct {
	backfill.Snapshot

	params     v1alpha1.ClusterSpec
	nodes      []node // as Snapshot.Nodes
	byName     map[string]int
	byObject   map[string]int // Kubernetes name
	partitions []*partition
	jobs       map[int64]*v1alpha1.BatchJob
	queue      queue
	choices    map[string][]choice
	users      map[string]int64
	features   map[string]bool // that any node has
	wanted     map[int64]Wanted
	policy     policy
	qos        map[string]*v1alpha1.QOS
	expected   map[int64]bool
	devices    map[place]backfill.CPUSet // taken; nil: not looked at yet
	members    map[types.UID]bool        // pods of workloads that hold their places
	waiting    map[types.UID]*corev1.Pod // pods of workloads that wait
	suited     map[suit]*backfill.NodeSet
	magnets    []*v1alpha1.Reservation
	// reservations that are stored, by object name; accounts are the users, by
	// name.
	reservations map[string]*v1alpha1.Reservation
	accounts     map[string]*v1alpha1.User
	tainted      bool // some node has a taint that pods may not tolerate
}

// Wanted is how a pending job was understood: the partition it would run in
// and the time limit it would get.
type Wanted struct {
	Partition string
	Others    []string // further partitions it names, in its order
	Inside    []string // reservations that attract it, by choice; nil: none does
	TimeLimit int32    // minutes, or job.Unlimited
	Priority  int64    // as squeue shows it
	Sharers   int      // jobs that may have its CPUs; 0 or 1: only itself
	// Tasks of an array that may start, the first ones first.
	Tasks []int32
}

// Limit is the time limit of a decision, in minutes: less than TimeLimit where
// the job took less to start earlier.
func (w *Wanted) Limit(d backfill.Decision) int32 {
	minutes := d.Duration / 60
	if d.Duration == backfill.Forever || w.TimeLimit > 0 && minutes >= int64(w.TimeLimit) {
		return w.TimeLimit
	}
	return int32(max(1, minutes))
}

// In is the partition of a Decision's Choice.
func (w *Wanted) In(choice int) string {
	if choice == 0 {
		return w.Partition
	}
	return w.Others[choice-1]
}

// Attracted is the name of the reservation that attracted the decision's job;
// "": none did.
func (v *View) Attracted(d backfill.Decision) string {
	if w := v.wanted[d.ID]; d.Choice < len(w.Inside) && w.Inside[d.Choice] != "" {
		name := w.Inside[d.Choice]
		return v1alpha1.UserName(name, v.reservations[name].Annotations)
	}
	return ""
}

// Build makes the View.
func Build(in Input) *View {
	v := &View{
		params:   in.Parameters,
		jobs:     make(map[int64]*v1alpha1.BatchJob, len(in.Jobs)),
		choices:  map[string][]choice{},
		users:    map[string]int64{},
		features: map[string]bool{},
		wanted:   make(map[int64]Wanted, len(in.Jobs)),

		reservations: map[string]*v1alpha1.Reservation{},
		accounts:     make(map[string]*v1alpha1.User, len(in.Policy.Users)),
	}
	v.Now, v.Overtime, v.Policy = in.Now.Unix(), endingSoon, backfill.DefaultPolicy()
	if n := in.Parameters.BackfillReservations; n != nil {
		v.Policy.Reservations = int(*n)
	}
	jobs := admitted(in.Jobs)
	for _, j := range jobs {
		v.jobs[j.Spec.JobID] = j
	}
	v.queue = newQueue(jobs, v.jobs, v.Now)
	v.addNodes(in.Nodes, in.Pods)
	v.addPartitions(in.Partitions)
	v.addLicenses()
	v.addReservations(in.Reservations)
	for _, u := range in.Policy.Users {
		v.accounts[u.Name] = u
	}
	v.avoid(in.Avoid)
	for _, j := range jobs {
		if j.HoldsAllocation() {
			v.Running = append(v.Running, v.running(j))
		}
	}
	v.addPolicy(&in)
	v.addExpected(in.Expected)
	v.Pending = make([]backfill.Job, 0, len(jobs)-len(v.Running))
	for _, j := range jobs {
		if j.AwaitsStart() {
			v.Pending = v.pending(v.Pending, j)
		}
	}
	v.Limits = v.policy.limits.Limits
	return v
}

// Wanted of a pending job of the view.
func (v *View) Wanted(id int64) Wanted { return v.wanted[id] }

// Job of the view by number, or nil.
func (v *View) Job(id int64) *v1alpha1.BatchJob { return v.jobs[id] }

// admitted leaves out what has no number, and orders the rest by it, so that
// the same objects give the same view.
func admitted(jobs []*v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	out := make([]*v1alpha1.BatchJob, 0, len(jobs))
	for _, j := range jobs {
		if j.Spec.JobID > 0 {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.BatchJob) int { return int(a.Spec.JobID - b.Spec.JobID) })
	return out
}

// gresOf splits "gpu-a100" style names: the part before the first "-" is the
// name, the rest the type.
func gresOf(resource string) (name, kind string) {
	name, kind, _ = strings.Cut(resource, "-")
	return name, kind
}
