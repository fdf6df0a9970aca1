package power

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

// provider records requests; fail is the error of the next ones.
type provider struct {
	calls []string
	fail  error
}

func (p *provider) call(verb string, nodes []string) error {
	p.calls = append(p.calls, verb+" "+strings.Join(nodes, ","))
	return p.fail
}

func (p *provider) Resume(_ context.Context, _ *v1alpha1.NodePool, nodes []string) error {
	return p.call("resume", nodes)
}

func (p *provider) Suspend(_ context.Context, _ *v1alpha1.NodePool, nodes []string) error {
	return p.call("suspend", nodes)
}

func (p *provider) Failed(_ context.Context, _ *v1alpha1.NodePool, nodes []string) error {
	return p.call("failed", nodes)
}

func (p *provider) Progress(context.Context, *v1alpha1.NodePool, []string) (map[string]Progress, error) {
	return nil, nil
}

// bench is a controller of a pool of three nodes with a clock.
type bench struct {
	*Controller
	t       *testing.T
	c       *control.Cluster
	p       *provider
	clock   time.Time
	planned map[string]time.Time
	made    int // Machines
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	wait := int32(100)
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{
		Name: "cloud", Finalizers: []string{wire.Finalizer},
	}, Spec: v1alpha1.NodePoolSpec{
		Nodes: "c[1-3]", BootTime: 20, SuspendTime: &wait,
		Resources: corev1.ResourceList{"cpu": resource.MustParse("4")},
		Program:   &v1alpha1.NodeProgram{Resume: "/resume", Suspend: "/suspend"},
	}}
	b := &bench{t: t, p: &provider{}, clock: time.Unix(1_000_000, 0), planned: map[string]time.Time{}}
	b.c = fake.Cluster(interceptor.Funcs{}, append(objects, pool)...)
	b.restart()
	stored := &v1alpha1.NodePool{}
	if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored); err != nil {
		t.Fatal(err)
	}
	b.c.NodePools.Apply(stored)
	return b
}

// restart replaces the controller by one that knows only the objects.
func (b *bench) restart() {
	var p Provider
	if b.p != nil {
		p = b.p
	}
	b.Controller = New(b.c, p, func() time.Time { return b.clock }, slog.New(slog.DiscardHandler))
}

// step decides and makes requests, and returns the states of the nodes.
func (b *bench) step() string {
	b.t.Helper()
	b.Update(b.t.Context(), func() map[string]time.Time { return b.planned })
	b.act(b.t.Context())
	return b.states()
}

func (b *bench) states() string {
	p, _ := b.c.NodePools.Get("cloud")
	var out []string
	for _, n := range p.Status.Nodes {
		text := n.Name + " " + n.State
		if !n.Requested {
			text += "?"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// place gives a job nodes.
func (b *bench) place(id int64, nodes ...string) {
	j := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("j", id), Namespace: "user-a"}}
	j.Spec.JobID, j.Status.State, j.Status.Allocation = id, v1alpha1.StateConfiguring, &v1alpha1.Allocation{}
	for _, n := range nodes {
		j.Status.Allocation.Nodes = append(j.Status.Allocation.Nodes, v1alpha1.NodeAllocation{Name: n, Node: n})
	}
	fake.Feed(b.c, j)
}

// endJob releases the nodes of the job.
func (b *bench) endJob(id int64) {
	j, _ := b.c.Job(id)
	b.c.Jobs.Remove(j, b.clock)
}

func (b *bench) register(name string, ready corev1.ConditionStatus) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
	fake.Feed(b.c, n)
}

func (b *bench) expect(what, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (b *bench) expectCalls(want ...string) {
	b.t.Helper()
	if !slices.Equal(b.p.calls, want) {
		b.t.Errorf("requests %q, want %q", b.p.calls, want)
	}
	b.p.calls = nil
}

func TestGangIsRequestedTogether(t *testing.T) {
	b := newBench(t)
	b.expect("nothing runs", b.step(), "")
	b.place(1, "c1", "c3")
	b.expect("placed", b.step(), "c1 PoweringUp, c3 PoweringUp")
	b.expectCalls("resume c1,c3")
	b.expect("accepted", b.step(), "c1 PoweringUp, c3 PoweringUp")
	b.expectCalls()
	b.register("c1", corev1.ConditionTrue)
	b.register("c3", corev1.ConditionTrue)
	b.expect("ready", b.step(), "c1 Running, c3 Running")
	b.endJob(1)
	b.expect("idle", b.step(), "c1 Running, c3 Running")
	b.clock = b.clock.Add(100 * time.Second)
	b.expect("for long", b.step(), "c1 PoweringDown, c3 PoweringDown")
	b.expectCalls("suspend c1,c3")
}

// A process that dies after a request and before that is recorded leaves it to the next one.
func TestRequestIsRepeatedUntilItIsRecorded(t *testing.T) {
	b := newBench(t)
	b.place(1, "c2")
	b.p.fail = errors.New("quota")
	b.expect("refused", b.step(), "c2 PoweringUp?")
	b.expectCalls("resume c2")
	b.expect("why", b.node("c2").Progress, "its request failed (the scheduler's log says why)")
	b.expect("not at once", b.step(), "c2 PoweringUp?")
	b.expectCalls()
	b.p.fail = nil
	b.restart()
	b.expect("the next leader", b.step(), "c2 PoweringUp")
	b.expect("nothing is wrong", b.node("c2").Progress, "")
	b.expectCalls("resume c2")
}

func TestProcessThatMayNotLeadMakesNoRequest(t *testing.T) {
	b := newBench(t)
	b.place(1, "c2")
	b.Leads = func() bool { return false }
	b.expect("not requested", b.step(), "c2 PoweringUp?")
	b.expectCalls()
}

func TestNodeThatDoesNotComeIsReportedAndSuspended(t *testing.T) {
	b := newBench(t)
	b.place(1, "c2")
	b.step()
	b.clock = b.clock.Add(time.Minute)
	b.p.calls = nil
	b.expect("late", b.step(), "c2 PoweringDown")
	b.expectCalls("failed c2", "suspend c2")
}

// The object of a node that was suspended and no longer responds is deleted.
func TestObjectsOfRemovedNodesAreDeleted(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid-c1"}}
	b := newBench(t, n.DeepCopy())
	b.register("c1", corev1.ConditionTrue)
	b.step()
	p, _ := b.c.NodePools.Get("cloud")
	if err := b.c.WritePool(t.Context(), p, func(s *v1alpha1.NodePoolStatus) { s.Nodes[0].PowerDown = true }); err != nil {
		t.Fatal(err)
	}
	b.expect("power_down", b.step(), "c1 PoweringDown")
	b.act(t.Context())
	if _, ok := b.c.Nodes.Get("c1"); !ok {
		t.Error("the object of a node that still responds was deleted")
	}
	old, _ := b.c.Nodes.Get("c1")
	lost := old.DeepCopy()
	lost.UID, lost.Status.Conditions[0].Status = "uid-c1", corev1.ConditionUnknown
	b.c.Nodes.Remove(old, b.clock)
	fake.Feed(b.c, lost)
	b.act(t.Context())
	if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err == nil {
		t.Error("the object of a node that is gone is still there")
	}
}

// A pool that is deleted stays until its nodes are removed, and requests no others.
func TestDeletedPoolRemovesItsNodes(t *testing.T) {
	b := newBench(t)
	b.register("c1", corev1.ConditionTrue)
	b.expect("it runs", b.step(), "c1 Running")
	p, _ := b.c.NodePools.Get("cloud")
	if err := b.c.Client.Delete(t.Context(), p.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	refresh := func() *v1alpha1.NodePool {
		stored := &v1alpha1.NodePool{}
		if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(p), stored); err != nil {
			return nil
		}
		b.c.NodePools.Apply(stored)
		return stored
	}
	if refresh() == nil {
		t.Fatal("it did not stay")
	}
	b.place(1, "c2")
	b.expect("it is deleted", b.step(), "c1 PoweringDown")
	b.expectCalls("suspend c1")
	old, _ := b.c.Nodes.Get("c1")
	b.c.Nodes.Remove(old, b.clock)
	b.clock = b.clock.Add(time.Minute)
	b.step() // nothing is left
	refresh()
	b.step()
	if refresh() != nil {
		t.Error("it is still there")
	}
}

// A write by somebody else is not overwritten.
func TestConflictsAreDecidedAgain(t *testing.T) {
	b := newBench(t)
	old, _ := b.c.NodePools.Get("cloud")
	if err := b.c.WritePool(t.Context(), old, func(s *v1alpha1.NodePoolStatus) {
		s.Nodes = []v1alpha1.PoolNode{{Name: "c3", State: v1alpha1.PoolFailed}}
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.c.WritePool(t.Context(), old, func(s *v1alpha1.NodePoolStatus) { s.Nodes = nil }); err == nil {
		t.Error("an old version was written")
	}
	b.expect("kept", b.states(), "c3 Failed?")
}

func TestProgramsGetAHostList(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/program"
	script := "#!/bin/sh\n[ \"$1\" = 'c[1-2]' ] && [ $BERTH_NODE_POOL = cloud ] || { echo wrong: $1; head -c 1000000 /dev/zero | tr '\\0' x; exit 1; }\n"
	exectest.Write(t, file, script)
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	pool.Spec.Program = &v1alpha1.NodeProgram{Resume: file, Suspend: file}
	if err := (programs{}).Resume(t.Context(), pool, []string{"c1", "c2"}); err != nil {
		t.Error(err)
	}
	if err := (programs{}).Suspend(t.Context(), pool, []string{"c1"}); err == nil ||
		!strings.Contains(err.Error(), "wrong: c1") {
		t.Errorf("the error is %v", err)
	}
	if err := (programs{}).Failed(t.Context(), pool, []string{"c1"}); err != nil {
		t.Error(err)
	}
}
