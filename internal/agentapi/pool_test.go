package agentapi

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func ended(id int64, cpus string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Spec.JobID, b.Status.Attempt = id, 1
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 1, CPUIDs: cpus, Address: "a:1"}}}
	return b
}

// An agent is given another job of its own kin that would have such a pod, on the
// very place that it holds, and once.
func TestPool(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPool(func() time.Time { return now })
	b := ended(88, "3")
	p.Offer(b, "a", "m")
	place := &v1alpha1.NodeAllocation{Name: "n1", CPUs: 1, CPUIDs: "3"}
	m := func() string { return "m" }
	if _, ok := p.Take("b", place, m); ok {
		t.Error("another's kin took it")
	}
	if _, ok := p.Take("a", place, func() string { return "n" }); ok {
		t.Error("a job with another pod took it")
	}
	for _, other := range []v1alpha1.NodeAllocation{
		{Name: "n2", CPUs: 1, CPUIDs: "3"}, {Name: "n1", CPUs: 1, CPUIDs: "2"}, {Name: "n1", CPUs: 1, CPUIDs: "3", Memory: 1},
	} {
		if _, ok := p.Take("a", &other, m); ok {
			t.Errorf("%+v was taken for it", other)
		}
	}
	x, ok := p.Take("a", place, m)
	if !ok || x.Address != "a:1" || x.Host != (v1alpha1.PodsOf{JobID: 88, Attempt: 1}) {
		t.Fatal("nobody took it")
	}
	if _, ok := p.Take("a", place, m); ok {
		t.Error("it was taken twice")
	}
	if p.withdraw(x.Host) {
		t.Error("it was withdrawn although taken")
	}
	next := ended(89, "3")
	next.Status.Pods = &x.Host
	p.Give(x, next)
	if got := <-x.next; got != next || p.Lingers(b) {
		t.Error("the job did not arrive")
	}
	p.Offer(next, "a", "m") // the pods are still those of 88
	if at := p.at(x.Host); at == nil {
		t.Error("the pods are on offer under another name")
	}
}

// A plan that knew a place to be free and gave it to no task lets its agent go;
// one that did not know does not.
func TestSettle(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPool(func() time.Time { return now })
	b := ended(88, "3")
	p.Offer(b, "a", "m")
	host := HostOf(b)
	p.Settle(now.Add(time.Second))
	if !p.Lingers(b) {
		t.Error("gone before its task's end was on record")
	}
	p.confirm(host)
	p.Settle(now)
	if !p.Lingers(b) {
		t.Error("gone by a plan that was made before")
	}
	x := p.at(host)
	p.Settle(now.Add(time.Second))
	if _, open := <-x.next; open || p.Lingers(b) {
		t.Error("it still waits")
	}
}
