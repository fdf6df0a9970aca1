package array

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

func anArray(spec string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.UID, b.Name = "uid", "j-x"
	b.Spec.JobID, b.Spec.Job.Array = 87, &job.Array{Spec: spec, Max: 2}
	b.Spec.Script, b.Spec.Job.Name = []byte("#!/bin/sh"), "name"
	return b
}

func TestRest(t *testing.T) {
	b := anArray("0-9%2")
	task := func(i int32) *v1alpha1.BatchJob { return Split(b, i) }
	if got := Rest(b, nil).String(); got != "0-9" {
		t.Error(got)
	}
	// Tasks that exist as objects do not count, even if the status has them as pending.
	if got := Rest(b, []*v1alpha1.BatchJob{task(3), task(7)}).String(); got != "0-2,4-6,8-9" {
		t.Error(got)
	}
	b.Status.Array = &v1alpha1.ArrayStatus{Pending: "4,6"}
	if got := Rest(b, []*v1alpha1.BatchJob{task(3), task(6)}).String(); got != "4" {
		t.Error(got)
	}
	own := int32(4)
	b.Status.Array = &v1alpha1.ArrayStatus{Own: &own}
	if Whole(b) || len(Rest(b, nil)) != 0 {
		t.Error("the array has not become its last task")
	}
	if id, x, ok := Task(b); !ok || id != 87 || x != (v1alpha1.ArrayTask{Index: 4, Count: 10, Max: 9, Step: 1}) {
		t.Error(id, x, ok)
	}
}

func TestSplit(t *testing.T) {
	b := anArray("4-24:4")
	one := Split(b, 12)
	if again := Split(b, 12); again.Name != one.Name {
		t.Error("a task has two names")
	}
	if other := Split(b, 16); other.Name == one.Name {
		t.Error("two tasks have one name")
	}
	s := one.Spec
	if s.Job.Array != nil || len(s.Script) != 0 || s.Origin.UID != "uid" || s.Job.Name != "name" {
		t.Errorf("%+v", one.Spec)
	}
	id, x, ok := Task(one)
	if !ok || id != 87 || x != (v1alpha1.ArrayTask{Index: 12, Count: 6, Min: 4, Max: 24, Step: 4}) || ID(one) != 87 ||
		ID(b) != 87 {
		t.Error(id, x, ok)
	}
	if _, _, ok := Task(b); ok {
		t.Error("a pending array is a task")
	}
}

func TestComponent(t *testing.T) {
	b := anArray("")
	b.Spec.Job.Array, b.Spec.Job.Het = nil, &job.Het{Size: 3}
	b.Spec.Components = []job.Job{
		{Name: "one", Partitions: []string{"p"}, Het: &job.Het{Offset: 1, Size: 3}},
		{Het: &job.Het{Offset: 2, Size: 3}},
	}
	for i := range b.Spec.Components {
		if c := Component(b, i); c.Spec.JobID != 88+int64(i) || HetID(c) != 87 || ID(c) != 0 {
			t.Errorf("%+v", c.Spec)
		}
	}
	if HetID(b) != 87 || Component(b, 0).Spec.Partition != "p" {
		t.Error("the first component")
	}
}

// BenchmarkRest measures the cost of an array of 10,000 tasks, of which 1,000 are
// split off, in each planner cycle.
func BenchmarkRest(b *testing.B) {
	whole := anArray("0-9999")
	whole.Status.Array = &v1alpha1.ArrayStatus{Pending: "1000-9999"}
	var tasks []*v1alpha1.BatchJob
	for i := range int32(1000) {
		tasks = append(tasks, Split(whole, i))
	}
	for b.Loop() {
		if len(Rest(whole, tasks)) != 9000 {
			b.Fatal("wrong")
		}
	}
}
