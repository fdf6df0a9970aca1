package agentapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/member"
	"github.com/berth-hpc/berth/internal/wire"
)

func ended(id int64, cpus string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Spec.JobID, b.Status.Attempt = id, 1
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 1, CPUIDs: cpus, Address: "a:1"}}}
	return b
}

// An agent can be reserved once, for a job with the same reuse key, template hash and
// allocation.
func TestPool(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPool(func() time.Time { return now })
	b := ended(88, "3")
	p.Offer(b, "a", "m")
	place := &v1alpha1.NodeAllocation{Name: "n1", CPUs: 1, CPUIDs: "3"}
	m := func() string { return "m" }
	if x := p.Reserve("b", place, m); x != nil {
		t.Error("reserved for another reuse key")
	}
	if x := p.Reserve("a", place, func() string { return "n" }); x != nil {
		t.Error("reserved for another pod template")
	}
	for _, other := range []v1alpha1.NodeAllocation{
		{Name: "n2", CPUs: 1, CPUIDs: "3"}, {Name: "n1", CPUs: 1, CPUIDs: "2"}, {Name: "n1", CPUs: 1, CPUIDs: "3", Memory: 1},
	} {
		if x := p.Reserve("a", &other, m); x != nil {
			t.Errorf("reserved for the allocation %+v", other)
		}
	}
	x := p.Reserve("a", place, m)
	if x == nil || x.Address != "a:1" || x.Host != (v1alpha1.PodsOf{JobID: 88, Attempt: 1}) {
		t.Fatal("not reserved")
	}
	if x := p.Reserve("a", place, m); x != nil {
		t.Error("reserved twice")
	}
	if p.withdraw(x.Host) {
		t.Error("withdrawn although it is reserved")
	}
	next := ended(89, "3")
	next.Status.Pods = &x.Host
	p.Assign(x, next)
	if got := <-x.next; got != next || p.IsWaiting(b) {
		t.Error("the job did not arrive")
	}
	p.Offer(next, "a", "m") // the pods are still those of 88
	if at := p.at(x.Host); at == nil {
		t.Error("the pods were added under another job")
	}
}

// A pod to which the kubelet gave CPUs runs any job with as many CPUs of its node, on these.
func TestPoolOfPodsWithOwnCPUs(t *testing.T) {
	p := NewPool(func() time.Time { return time.Unix(1000, 0) })
	b := ended(88, "3")
	b.Status.Allocation.Nodes[0].PodCPUs = true
	p.Offer(b, "a", "m")
	m := func() string { return "m" }
	if x := p.Reserve("a", &v1alpha1.NodeAllocation{Name: "n1", CPUs: 2, CPUIDs: "0-1"}, m); x != nil {
		t.Error("reserved for more CPUs")
	}
	n := v1alpha1.NodeAllocation{Name: "n1", CPUs: 1, CPUIDs: "0"}
	x := p.Reserve("a", &n, m)
	if x == nil {
		t.Fatal("not reserved")
	}
	if x.Record(&n); n.CPUIDs != "3" || !n.PodCPUs || n.Address != "a:1" {
		t.Errorf("%+v", n)
	}
}

// A plan in which the place of an agent was free, and that uses it for no job, makes
// the agent exit. An older plan does not.
func TestReleaseUnused(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPool(func() time.Time { return now })
	b := ended(88, "3")
	p.Offer(b, "a", "m")
	host := b.RunsIn()
	p.ReleaseUnused(now.Add(time.Second))
	if !p.IsWaiting(b) {
		t.Error("released before the end of its job was recorded")
	}
	p.confirm(host)
	p.ReleaseUnused(now)
	if !p.IsWaiting(b) {
		t.Error("released by an older plan")
	}
	x := p.at(host)
	p.ReleaseUnused(now.Add(time.Second))
	if _, open := <-x.next; open || p.IsWaiting(b) {
		t.Error("it still waits")
	}
}

// An agent that is released receives the job that runs in its pod nevertheless: that of one
// of several writes, of which another one failed.
func TestAReleasedAgentReceivesTheJobInItsPod(t *testing.T) {
	first, next := ended(88, "3"), ended(89, "3")
	next.Namespace, next.Name = "user-anna", "j-89"
	c := fake.Cluster(interceptor.Funcs{})
	s := New(Options{Cluster: c, Pool: NewPool(time.Now)})
	s.Pool.Offer(first, "a", "m")
	host := first.RunsIn()
	close(s.Pool.at(host).next) // its request waited when it was released
	ask := func() (*v1alpha1.BatchJob, error) {
		a := &agent{host: member.Place{JobID: host.JobID, Attempt: host.Attempt}, job: first}
		return s.nextFor(httptest.NewRequest(http.MethodPost, "/", http.NoBody), a, &wire.NextQuery{JobID: 88, Attempt: 1})
	}
	if b, err := ask(); !errors.Is(err, errOver) {
		t.Errorf("nothing runs there: %v, %v", b, err)
	}
	next.Status.State, next.Status.Pods = v1alpha1.StateRunning, &host
	fake.Feed(c, next)
	if b, err := ask(); err != nil || b.Spec.JobID != 89 {
		t.Errorf("job 89 runs there: %v, %v", b, err)
	}
}
