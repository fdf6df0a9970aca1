package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

const namespace = "user-a"

// users submit and change jobs. Their requests reach the API server without a fault.
type users struct {
	sim       *simulation
	submitted int
}

func (u *users) done() bool { return u.submitted >= u.sim.jobs }

// act lets a user do one thing.
func (u *users) act() {
	s := u.sim
	s.nextUser = time.Now().Add(s.between(0, 6*time.Second))
	if s.chance(10) { // a pause
		s.nextUser = time.Now().Add(s.between(0, 2*time.Minute))
	}
	switch n := s.random.IntN(20); {
	case n < 13:
		u.submit()
	case n < 16:
		u.change("cancel", isNotFinal, func(b *v1alpha1.BatchJob) {
			now := metav1.NewMicroTime(s.now())
			b.Spec.Cancel = &v1alpha1.CancelRequest{By: "a", At: &now}
		})
	case n < 17:
		u.change("requeue", isRunning, func(b *v1alpha1.BatchJob) { b.Spec.Requeues++ })
	case n < 18:
		u.change("hold", isPending, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" })
	case n < 19:
		u.change("release", isHeld, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "" })
	default:
		u.change("shorten", isRunning, func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 1 })
	}
}

func isNotFinal(b *v1alpha1.BatchJob) bool { return !b.IsFinal() && b.Spec.Cancel == nil }
func isRunning(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateRunning && b.Spec.Cancel == nil
}
func isPending(b *v1alpha1.BatchJob) bool { return b.AwaitsStart() && b.Spec.Job.Hold == "" }
func isHeld(b *v1alpha1.BatchJob) bool    { return b.AwaitsStart() && b.Spec.Job.Hold == "user" }

// jobs returns the jobs for which is is true.
func (u *users) jobs(is func(*v1alpha1.BatchJob) bool) (all []*v1alpha1.BatchJob) {
	for _, o := range u.sim.api.list(kindJob) {
		b := o.(*v1alpha1.BatchJob) //nolint:forcetypeassert // of that kind
		if b.Spec.JobID != 0 && b.DeletionTimestamp == nil && is(b) {
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
	submit := metav1.NewMicroTime(s.now())
	requeue := s.chance(2)
	nodes := int32(1)
	if s.chance(3) {
		nodes = 2
	}
	j := job.Job{
		Shape: job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: 1 + s.random.Int32N(cpusOfNode)},
		Time:  job.Time{Limit: []int32{1, 2, 5, 10, 600}[s.random.IntN(5)]},
		Batch: job.Batch{Requeue: &requeue},
	}
	switch {
	case s.chance(6):
		j.Time.Begin = s.now().Add(s.between(0, 5*time.Minute)).Unix()
	case s.chance(6):
		kinds := []string{"afterok", "afterany", "afternotok", "after"}
		// A job that is gone counts as a dependency that is satisfied.
		if other, ok := pick(s.random, u.jobs(func(*v1alpha1.BatchJob) bool { return true })); ok {
			j.Dependencies.Items = []job.Dependency{{Type: kinds[s.random.IntN(4)], JobID: other.Spec.JobID}}
		}
	case s.chance(8):
		j.Array = &job.Array{Spec: "0-3%2", Indexes: []int32{0, 1, 2, 3}, Max: 2}
		u.submitted += 3
	}
	id := s.nextID()
	u.submitted++
	_, err := s.api.create(&v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("j-%d", id), Finalizers: []string{wire.Finalizer},
		},
		Spec: v1alpha1.BatchJobSpec{JobID: id, User: "a", Partition: "debug", SubmitTime: &submit, Job: j},
	})
	if err != nil {
		panic(err) // the name is new
	}
	s.record(fmt.Sprintf("submit %d", id))
}
