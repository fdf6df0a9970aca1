package control

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// presumed is a single pod's job that is in memory only.
func presumed(c *Cluster, id int64) *v1alpha1.BatchJob {
	b := single(0)
	b.Namespace, b.Name, b.Spec.JobID = "ml", "w", id
	c.Presume(b)
	return b
}

// made is the object that came of it.
func made(id int64, rv int) *v1alpha1.BatchJob {
	b := single(rv)
	b.Namespace, b.Name, b.Spec.JobID = "ml", "w", id
	return b
}

// The object takes the place of the job that was there before it, which stays
// what it is meanwhile.
func TestAJobBeforeItsObject(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	var last [2]*v1alpha1.BatchJob
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) { last = [2]*v1alpha1.BatchJob{old, now} })
	first := presumed(c, 1)
	if !Unmade(first) || !MayRunAhead(first) {
		t.Fatalf("%+v", first)
	}
	placed := first.DeepCopy()
	placed.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, Attempt: 1}
	if !c.GoAhead(first, placed) {
		t.Fatal("it may not run ahead")
	}
	c.Jobs.Apply(made(1, 7))
	b, _ := c.Job(1)
	if Unmade(b) || b.UID != "a" || b.Status.State != v1alpha1.StateRunning || !b.Status.Unwritten {
		t.Errorf("%+v", b)
	}
	if c.Jobs.Len() != 1 || !c.StoodFor("p") || last[0] != placed || last[1] != b {
		t.Errorf("%d jobs, told of %v", c.Jobs.Len(), last)
	}
	if c.GoAhead(placed, placed.DeepCopy()) {
		t.Error("the place of a job was taken that is an object by now")
	}
}

// An object that an earlier process made counts, with its number.
func TestAnObjectWithAnotherNumber(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	gone := false
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) { gone = gone || now == nil && old.Spec.JobID == 2 })
	b := presumed(c, 2)
	placed := b.DeepCopy()
	placed.Status.State = v1alpha1.StateRunning
	c.GoAhead(b, placed)
	c.Jobs.Apply(made(1, 7))
	if _, known := c.Job(2); known || !gone {
		t.Error("the number that counts no more is still there")
	}
	if b, _ := c.Job(1); b == nil || b.Status.State != "" {
		t.Errorf("%+v", b)
	}
}
