package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/array"
)

// truth is what really happened, and what of it was wrong.
type truth struct {
	sim        *simulation
	violations []string
	runs       int
	states     map[string]int // jobs by final state

	jobs       map[int64]*history
	present    map[string]map[runKey]backfill.CPUSet // by node: what runs there
	first      map[runKey]string                     // the batch host
	nodeFailed bool                                  // a node or pod failed at some time

	ended []ended                // jobs whose objects are gone
	ends  map[string][]time.Time // by reservation: its ends
	seen  map[string]int         // how often things happened that the tests must contain
}

// history is what happened to a job.
type history struct {
	uid                 types.UID // of its object
	namespace           string
	placed              map[int32]*v1alpha1.BatchJob // by attempt: the last version that has nodes
	runs                []runKey
	running             bool
	started             time.Time
	cancelled, requeued bool // requested by its user
	final               string
	tasks               []int64          // of an array: the jobs that were split off
	preempted           map[int32]string // by attempt: how it was preempted
	gone                time.Time        // when its object was removed
}

// part is what runs of an attempt on one node.
type part struct {
	run   runKey
	node  string
	first bool // the batch host
}

func newTruth(s *simulation) truth {
	return truth{
		sim: s, states: map[string]int{}, jobs: map[int64]*history{},
		present: map[string]map[runKey]backfill.CPUSet{}, first: map[runKey]string{},
		ends: map[string][]time.Time{}, seen: map[string]int{},
	}
}

func (t *truth) violate(format string, args ...any) {
	t.violations = append(t.violations, fmt.Sprintf(format, args...))
	t.sim.record("VIOLATION: " + t.violations[len(t.violations)-1])
}

func (t *truth) of(id int64) *history {
	if t.jobs[id] == nil {
		t.jobs[id] = &history{preempted: map[int32]string{}, placed: map[int32]*v1alpha1.BatchJob{}}
	}
	return t.jobs[id]
}

// requested notes what a user requested.
func (t *truth) requested(verb string, b *v1alpha1.BatchJob) {
	for id := range t.family(b) {
		switch verb {
		case "cancel":
			t.of(id).cancelled = true
		case "requeue":
			t.of(id).requeued = true
		}
	}
}

// family returns the ids of the job and, for an array or a heterogeneous job, of the
// other jobs that belong to it.
func (t *truth) family(b *v1alpha1.BatchJob) map[int64]bool {
	ids := map[int64]bool{b.Spec.JobID: true}
	if het := array.HetID(b); het != 0 {
		for i := range int64(b.Spec.Job.Het.Size) {
			ids[het+i] = true
		}
	}
	for _, o := range t.sim.api.list(kindJob) {
		x := o.(*v1alpha1.BatchJob) //nolint:forcetypeassert // of that kind
		if x.Spec.Origin != nil && x.Spec.Origin.JobID == b.Spec.JobID {
			ids[x.Spec.JobID] = true
		}
	}
	return ids
}

// scriptStarted notes that the script of an attempt was started on those CPUs.
func (t *truth) scriptStarted(k runKey, b *v1alpha1.BatchJob, cpus map[string]backfill.CPUSet) {
	t.runs++
	h := t.of(k.job)
	switch {
	case slices.Contains(h.runs, k):
		t.violate("attempt %s ran twice", k)
	case h.running && !t.sim.machine.isLost(t.first[h.runs[len(h.runs)-1]]): // what runs on a lost node cannot be stopped
		t.violate("attempt %s began while another of the job ran", k)
	case len(h.runs) > 0 && !h.requeued && !*b.Spec.Job.Batch.Requeue:
		t.violate("job %d ran again and must not be requeued", k.job)
	case len(h.runs) > 0 && !h.requeued && !t.nodeFailed && !t.mayRunAgain(b):
		t.violate("job %d ran again without a cause", k.job)
	}
	t.checkConditions(k, b)
	t.checkTogether(k, b)
	t.checkPod(k, b)
	t.countRun(h, b)
	h.runs = append(h.runs, k)
	h.running, h.started = true, time.Now()
	t.first[k] = b.Status.Allocation.Nodes[0].Node
	for node, set := range cpus {
		for other, held := range t.present[node] {
			if held.Intersects(set) {
				t.violate("attempts %s and %s share CPUs of %s: %s and %s", k, other, node, set, held)
			}
		}
		if t.present[node] == nil {
			t.present[node] = map[runKey]backfill.CPUSet{}
		}
		t.present[node][k] = set
	}
}

// checkConditions checks begin time and dependencies of a job that starts.
func (t *truth) checkConditions(k runKey, b *v1alpha1.BatchJob) {
	if begin := b.Spec.Job.Time.Begin; begin > 0 && t.sim.latest().Before(time.Unix(begin, 0)) {
		t.violate("job %s began before its begin time", k)
	}
	if len(t.of(k.job).runs) == 0 { // afterwards a dependency is satisfied for good
		t.checkDependencies(k, b)
	}
}

// countRun counts the kinds of runs that the tests must contain.
func (t *truth) countRun(h *history, b *v1alpha1.BatchJob) {
	if isFurther(b) {
		t.seen["further components started"]++
	}
	if reserve.Of(b) != "" {
		t.seen["jobs started in a reservation"]++
	}
	if len(h.runs) > 0 && h.lastMode() != "" {
		t.seen["preempted jobs ran again"]++
	}
}

// scriptEnded notes that the script of an attempt ended everywhere that responds.
func (t *truth) scriptEnded(k runKey) {
	t.of(k.job).running = false
	for _, x := range t.parts() {
		if x.run == k && !t.sim.machine.isLost(x.node) {
			t.podEnded(k, x.node)
		}
	}
}

// podEnded notes that nothing of the attempt runs on the node any more.
func (t *truth) podEnded(k runKey, node string) { delete(t.present[node], k) }

// parts returns what runs, in the order of nodes and attempts.
func (t *truth) parts() (all []part) {
	for i := range t.sim.nodes {
		name := nodeName(i)
		for k := range t.present[name] {
			all = append(all, part{k, name, t.first[k] == name})
		}
	}
	slices.SortFunc(all, func(a, b part) int {
		switch {
		case a.node != b.node:
			return compare(a.node < b.node)
		case a.run.job != b.run.job:
			return compare(a.run.job < b.run.job)
		}
		return int(a.run.attempt - b.run.attempt)
	})
	return all
}

func compare(less bool) int {
	if less {
		return -1
	}
	return 1
}

// changed checks a change of an object.
func (t *truth) changed(old, now client.Object) {
	switch now := now.(type) {
	case *v1alpha1.BatchJob:
		was, _ := old.(*v1alpha1.BatchJob)
		t.jobChanged(current(was), current(now))
	case *v1alpha1.Reservation:
		t.reservationChanged(now)
	case nil:
		if b, ok := old.(*v1alpha1.BatchJob); ok {
			t.jobRemoved(b)
		}
	}
}

// jobRemoved checks a job whose object is removed.
func (t *truth) jobRemoved(b *v1alpha1.BatchJob) {
	if !b.CurrentStatus().IsFinal() {
		t.violate("job %d was removed in state %q", b.Spec.JobID, b.Status.State)
		return
	}
	t.of(b.Spec.JobID).gone = time.Now()
	if t.sim.database != "" {
		t.ended = append(t.ended, ended{b.Spec.JobID, b.Status.Restarts, b.CurrentStatus().State})
	}
}

// current returns the job with its status, which a job that was created as running has in
// its spec at first.
func current(b *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	if b == nil || b.InitialStatus() == nil {
		return b
	}
	n := *b
	n.Status = *b.CurrentStatus()
	return &n
}

func (t *truth) jobChanged(old, now *v1alpha1.BatchJob) {
	id := now.Spec.JobID
	h := t.of(id)
	state := now.Status.State
	if h.uid != "" && h.uid != now.UID {
		t.violate("job %d has another object: %s after %s", id, now.UID, h.uid)
	}
	h.uid, h.namespace = now.UID, now.Namespace
	if now.Status.Allocation != nil {
		h.placed[now.Status.Attempt] = now
	}
	t.noteForDependencies(now)
	if old != nil && old.IsFinal() && state != old.Status.State &&
		old.Spec.Requeues <= old.Status.Requeues && !t.isQueuedWithFirst(old) {
		t.violate("job %d was %s and became %q", id, old.Status.State, state)
	}
	t.checkPreemption(old, now)
	if now.Status.Attempt > 0 && (old == nil || now.Status.Attempt > old.Status.Attempt) {
		t.recordPlacement(now)
		t.checkReservations(now)
		t.checkReuse(now)
	}
	if !now.IsFinal() {
		h.final = ""
		t.checkAllocation(now)
		return
	}
	if h.final == "" {
		t.states[state]++
		t.checkFinal(id, h, now, state)
	}
	h.final = state
}

// recordPlacement adds the nodes and pods of a job that is placed to the trace.
func (t *truth) recordPlacement(b *v1alpha1.BatchJob) {
	var where []string
	for i := range b.Status.Allocation.Nodes {
		n := &b.Status.Allocation.Nodes[i]
		where = append(where, n.Node+":"+n.CPUIDs)
	}
	k := runKey{b.Spec.JobID, b.Status.Attempt}
	t.sim.record(fmt.Sprintf("... places %s on %s in the pods of %s", k, strings.Join(where, " "), hostOf(b)))
}

// checkAllocation checks that no other job holds CPUs of this job's allocation.
func (t *truth) checkAllocation(b *v1alpha1.BatchJob) {
	if !b.HoldsAllocation() {
		return
	}
	for _, o := range t.sim.api.list(kindJob) {
		x := current(o.(*v1alpha1.BatchJob)) //nolint:forcetypeassert // of that kind
		if x.Spec.JobID == b.Spec.JobID || !x.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			for j := range x.Status.Allocation.Nodes {
				p, q := &b.Status.Allocation.Nodes[i], &x.Status.Allocation.Nodes[j]
				if p.Node != q.Node {
					continue
				}
				a, err := backfill.ParseCPUSet(p.CPUIDs)
				c, err2 := backfill.ParseCPUSet(q.CPUIDs)
				if err != nil || err2 != nil || a.Intersects(c) {
					t.violate("jobs %d and %d hold CPUs %s and %s of %s", b.Spec.JobID, x.Spec.JobID,
						p.CPUIDs, q.CPUIDs, p.Node)
				}
			}
		}
	}
}

// checkFinal checks a final state against what happened.
func (t *truth) checkFinal(id int64, h *history, b *v1alpha1.BatchJob, state string) {
	ok := false
	a := t.sim.machine.agentsOf(runKey{id, b.Status.Attempt})
	switch state {
	case v1alpha1.StateCompleted:
		ok = a.started && a.ended && a.status == 0 && a.signal == 0
	case v1alpha1.StateFailed:
		ok = a.started && a.ended
	case v1alpha1.StateCancelled:
		ok = h.cancelled || b.Spec.Origin != nil && t.of(b.Spec.Origin.JobID).cancelled
	case v1alpha1.StateTimeout:
		limit := time.Duration(b.Status.TimeLimit) * time.Minute
		begin := b.Status.StartTime // the script starts a moment later
		ok = begin != nil && (t.sim.latest().Sub(begin.Time) >= limit || t.endsWithReservation(b))
	case v1alpha1.StateNodeFail:
		ok = t.nodeFailed
	case v1alpha1.StateBootFail:
		ok = !a.started && !*b.Spec.Job.Batch.Requeue && t.awaitedPool(h, b)
	case v1alpha1.StatePreempted:
		ok = t.endsPreempted(b)
	}
	ok = ok || t.endsWithOthers(b, state)
	if !ok {
		t.violate("job %d became %s (%s %s) with %d runs, script started %v, ended %v, status %d, signal %d", id, state,
			b.Status.Reason, b.Status.Message, len(h.runs), a.started, a.ended, a.status, a.signal)
	}
	if h.running && a.started && !t.nodeFailed {
		t.violate("job %d became %s while its script ran", id, state)
	}
}

// settled reports whether every job has a final state and nothing is left.
func (t *truth) settled() bool {
	return len(t.sim.api.list(kindJob)) == 0 && len(t.left()) == 0 && t.sim.leader != nil
}

// left names the objects and scripts that are left.
func (t *truth) left() (all []string) {
	for _, kind := range []string{kindJobSet, kindPodGroup, kindPod} {
		for _, o := range t.sim.api.list(kind) {
			text := kind + " " + o.GetName()
			if p, ok := o.(*corev1.Pod); ok {
				text += fmt.Sprintf(" (%s, on %q, deleted %v)", p.Status.Phase, p.Spec.NodeName,
					p.DeletionTimestamp != nil)
			}
			all = append(all, text)
		}
	}
	for i := range t.sim.nodes {
		if name := nodeName(i); t.sim.machine.rented[name] != nil {
			all = append(all, "machine of "+name)
		}
	}
	for _, x := range t.parts() {
		all = append(all, "script of "+x.run.String()+" on "+x.node)
	}
	return all
}

// unsettled notes what is left after a day without faults.
func (t *truth) unsettled() {
	for _, o := range t.sim.api.list(kindJob) {
		b := o.(*v1alpha1.BatchJob) //nolint:forcetypeassert // of that kind
		t.violate("job %d is stuck: %s %s %s", b.Spec.JobID, b.Status.State, b.Status.Reason, b.Status.Message)
	}
	for _, x := range t.left() {
		t.violate("left: %s", x)
	}
}
