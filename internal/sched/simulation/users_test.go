package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// userNames are the users, and namespace is that of the first one.
var userNames = []string{"a", "b"}

const namespace = "user-a"

// users submit and change jobs. Their requests reach the API server without a fault.
type users struct {
	sim          *simulation
	submitted    int
	reservations int
}

func (u *users) done() bool { return u.submitted >= u.sim.jobs }

// act does one thing as a user.
func (u *users) act() {
	s := u.sim
	s.nextUser = time.Now().Add(s.between(0, 6*time.Second))
	if s.queue > 0 {
		u.actBusily()
		return
	}
	if s.chance(10) { // a pause
		s.nextUser = time.Now().Add(s.between(0, 2*time.Minute))
	}
	switch n := s.random.IntN(21); {
	case n == 20:
		u.reserve()
	case n < 13:
		u.submit()
	case n < 16:
		u.cancelOne()
	case n < 17:
		u.change("requeue", isRequeuable, func(b *v1alpha1.BatchJob) { b.Spec.Requeues++ })
	case n < 18:
		u.change("hold", isPending, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" })
	case n < 19:
		u.change("release", isHeld, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "" })
	default:
		u.change("shorten", isRunning, func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 1 })
	}
}

// actBusily keeps the queue at its length, and changes jobs from time to time.
func (u *users) actBusily() {
	s := u.sim
	s.nextUser = time.Now().Add(s.between(0, time.Second))
	if n := len(u.jobs(func(b *v1alpha1.BatchJob) bool { return !b.IsFinal() })); n < s.queue {
		u.submit()
		return
	}
	s.nextUser = time.Now().Add(s.between(0, 10*time.Second))
	switch s.random.IntN(12) {
	case 0:
		u.change("requeue", isRequeuable, func(b *v1alpha1.BatchJob) { b.Spec.Requeues++ })
	case 1:
		u.reserve()
	case 2:
		s.machine.evict()
	case 3:
		if s.chance(20) {
			s.machine.lose()
		}
	case 4, 5:
		u.cancelOne()
	}
}

// cancelOne cancels a job, with all components.
func (u *users) cancelOne() {
	u.changeAll("cancel", isNotFinal, func(b *v1alpha1.BatchJob) {
		now := metav1.NewMicroTime(u.sim.now())
		b.Spec.Cancel = &v1alpha1.CancelRequest{By: "a", At: &now}
	})
}

func isNotFinal(b *v1alpha1.BatchJob) bool { return !b.IsFinal() && b.Spec.Cancel == nil }
func isRunning(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateRunning && b.Spec.Cancel == nil
}
func isRequeuable(b *v1alpha1.BatchJob) bool { return isRunning(b) && !isFurther(b) }
func isPending(b *v1alpha1.BatchJob) bool {
	return b.AwaitsStart() && b.Spec.Job.Hold == "" && !isFurther(b)
}
func isHeld(b *v1alpha1.BatchJob) bool { return b.AwaitsStart() && b.Spec.Job.Hold == "user" }

// jobs returns the jobs for which is is true.
func (u *users) jobs(is func(*v1alpha1.BatchJob) bool) (all []*v1alpha1.BatchJob) {
	for _, o := range u.sim.api.list(kindJob) {
		b := o.(*v1alpha1.BatchJob) //nolint:forcetypeassert // of that kind
		if b.Spec.JobID != 0 && b.DeletionTimestamp == nil && is(current(b)) {
			all = append(all, b)
		}
	}
	return all
}

// change changes one of the jobs for which is is true.
func (u *users) change(verb string, is func(*v1alpha1.BatchJob) bool, do func(*v1alpha1.BatchJob)) {
	b, ok := pick(u.sim.random, u.jobs(is))
	if !ok {
		return
	}
	u.put(verb, b, do)
}

// changeAll is change, and changes all components of a heterogeneous job.
func (u *users) changeAll(verb string, is func(*v1alpha1.BatchJob) bool, do func(*v1alpha1.BatchJob)) {
	b, ok := pick(u.sim.random, u.jobs(is))
	if !ok {
		return
	}
	all := []*v1alpha1.BatchJob{b}
	if het := array.HetID(b); het != 0 {
		all = u.sim.components(het)
	}
	for _, b := range all {
		u.put(verb, b, do)
	}
}

func (u *users) put(verb string, b *v1alpha1.BatchJob, do func(*v1alpha1.BatchJob)) {
	u.sim.record(fmt.Sprintf("%s %d", verb, b.Spec.JobID))
	n := b.DeepCopy()
	do(n)
	u.sim.truth.requested(verb, b)
	u.sim.api.put(n)
}

// cancelPending cancels every pending job, held ones included.
func (u *users) cancelPending() {
	for _, b := range u.jobs(func(b *v1alpha1.BatchJob) bool { return b.AwaitsStart() }) {
		n := b.DeepCopy()
		now := metav1.NewMicroTime(u.sim.now())
		n.Spec.Cancel = &v1alpha1.CancelRequest{By: "a", At: &now}
		u.sim.truth.requested("cancel", b)
		u.sim.api.put(n)
	}
}

func (u *users) submit() {
	if u.done() {
		return
	}
	s := u.sim
	b := u.newJob()
	u.addClass(b)
	j := &b.Spec.Job
	switch {
	case s.chance(6):
		j.Time.Begin = s.now().Add(s.between(0, 5*time.Minute)).Unix()
	case s.chance(6):
		kinds := []string{"afterok", "afterany", "afternotok", "after"}
		// A job that is gone counts as a dependency that is satisfied.
		isSingle := func(b *v1alpha1.BatchJob) bool { return array.HetID(b) == 0 }
		if other, ok := pick(s.random, u.jobs(isSingle)); ok {
			j.Dependencies.Items = []job.Dependency{{Type: kinds[s.random.IntN(4)], JobID: other.Spec.JobID}}
		}
	case s.chance(8):
		j.Array = &job.Array{Spec: "0-3%2", Indexes: []int32{0, 1, 2, 3}, Max: 2}
		u.submitted += 3
	case s.chance(6):
		u.addComponents(b)
	case b.Spec.User == userNames[0] && s.chance(3):
		if r, ok := pick(s.random, s.api.list(kindReservation)); ok {
			j.Reservation = r.GetName()
		}
	}
	u.create(b)
}

// newJob returns a job that is not submitted yet.
func (u *users) newJob() *v1alpha1.BatchJob {
	submit := metav1.NewMicroTime(u.sim.now())
	name := userNames[0]
	if u.sim.chance(4) {
		name = userNames[1]
	}
	return &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{
		User: name, Partition: "debug", SubmitTime: &submit, Job: u.description(),
	}}
}

// create submits the job.
func (u *users) create(b *v1alpha1.BatchJob) {
	s := u.sim
	b.Spec.JobID = s.nextID()
	s.lastID += int64(len(b.Spec.Components)) // they get the next ids
	u.submitted++
	b.ObjectMeta = metav1.ObjectMeta{
		Namespace: "user-" + b.Spec.User, Name: fmt.Sprintf("j-%d", b.Spec.JobID), Finalizers: []string{wire.Finalizer},
	}
	if _, err := s.api.create(b); err != nil {
		panic(err) // the name is new
	}
	s.record(fmt.Sprintf("submit %d", b.Spec.JobID))
}

// description returns the description of a job or component.
func (u *users) description() job.Job {
	s := u.sim
	requeue := s.chance(2)
	nodes := int32(1)
	if s.chance(3) {
		nodes = 2
	}
	dir := "/home"
	if s.chance(4) {
		dir = "/scratch"
	}
	cpus := 1 + s.random.Int32N(cpusOfNode)
	limit := []int32{1, 2, 5, 10, 600}[s.random.IntN(5)]
	if s.queue > 0 {
		limit = 1 + limit%2
	}
	return job.Job{
		Shape: job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: cpus},
		Time:  job.Time{Limit: limit},
		Batch: job.Batch{Requeue: &requeue, WorkDir: dir},
	}
}

// addClass gives the job a class.
func (u *users) addClass(b *v1alpha1.BatchJob) {
	class, _ := pick(u.sim.random, []string{"", "", classUrgent, classSpare, classSpare, classScrap, classScrap})
	switch {
	case class == "":
	case u.sim.preemptType == preemptByQOS:
		b.Spec.Job.QOS = class
	default:
		b.Spec.Partition, b.Spec.Job.Partitions = class, []string{class}
	}
}

// addComponents makes the job heterogeneous, of two or three components of one class.
func (u *users) addComponents(b *v1alpha1.BatchJob) {
	n := 1 + u.sim.random.IntN(2)
	for i := range n {
		c := u.description()
		c.Shape.MinNodes, c.Shape.MaxNodes = 1, 1
		c.QOS, c.Partitions, c.Batch, c.Time = b.Spec.Job.QOS, []string{b.Spec.Partition}, b.Spec.Job.Batch, b.Spec.Job.Time
		c.Het = &job.Het{Offset: int32(i + 1), Size: int32(n + 1)}
		b.Spec.Components = append(b.Spec.Components, c)
	}
	b.Spec.Job.Shape.MinNodes, b.Spec.Job.Shape.MaxNodes = 1, 1
	b.Spec.Job.Het = &job.Het{Size: int32(n + 1)}
	u.submitted += n
}
