package pools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

var start = time.Unix(1_000_000, 0)

// world is a pool with its nodes and a clock.
type world struct {
	pool    *v1alpha1.NodePool
	now     time.Time
	nodes   map[string]*corev1.Node
	held    map[string]bool
	planned map[string]time.Time
	busy    map[string]bool
	idle    map[string]time.Time
}

func newWorld() *world {
	wait := int32(100)
	return &world{
		pool: &v1alpha1.NodePool{
			ObjectMeta: metav1.ObjectMeta{Name: "cloud"},
			Spec: v1alpha1.NodePoolSpec{
				Nodes: "c[1-3]", BootTime: 20, ResumeTimeout: 60, SuspendTimeout: 30, SuspendTime: &wait,
				Resources: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1000Mi")},
				Program:   &v1alpha1.NodeProgram{Resume: "/resume", Suspend: "/suspend"},
			},
		},
		now: start, nodes: map[string]*corev1.Node{}, held: map[string]bool{}, planned: map[string]time.Time{},
		busy: map[string]bool{}, idle: map[string]time.Time{},
	}
}

// next decides once, and returns the states of the nodes and in how many seconds it is due.
func (w *world) next() string {
	f := &Facts{
		Now: w.now, Held: w.held, Planned: w.planned,
		Node:   func(name string) *corev1.Node { return w.nodes[name] },
		IsBusy: func(name string) bool { return w.busy[name] },
		IdleSince: func(name string) time.Time {
			if w.idle[name].IsZero() {
				w.idle[name] = w.now
			}
			return w.idle[name]
		},
		Used: func(name string) { delete(w.idle, name) },
	}
	all := []*v1alpha1.NodePool{w.pool}
	st, due := Next(w.pool, Assign(all)[w.pool.Name], f)
	w.pool.Status = st
	var out []string
	for _, n := range st.Nodes {
		text := n.Name + " " + n.State
		if n.Requested {
			text += " requested"
		}
		if n.Failures > 0 {
			text += fmt.Sprint(" failures ", n.Failures)
		}
		if n.Reason != "" {
			text += " (" + n.Reason + ")"
		}
		out = append(out, text)
	}
	if !due.IsZero() {
		out = append(out, fmt.Sprint("due in ", due.Sub(w.now).Seconds()))
	}
	if st.Problem != "" {
		out = append(out, st.Problem)
	}
	return strings.Join(out, ", ")
}

// accept marks all requests as accepted.
func (w *world) accept() {
	for i := range w.pool.Status.Nodes {
		w.pool.Status.Nodes[i].Requested = true
	}
}

func (w *world) register(name, cpus string, ready corev1.ConditionStatus) {
	w.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpus), "memory": resource.MustParse("1000Mi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

func (w *world) expect(t *testing.T, what, want string) {
	t.Helper()
	if got := w.next(); got != want {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

func TestNodeComesAndGoes(t *testing.T) {
	w := newWorld()
	w.expect(t, "nothing needs a node", "")
	w.held["c2"] = true
	w.expect(t, "a job has it", "c2 PoweringUp, due in 60")
	w.accept()
	w.now = w.now.Add(15 * time.Second)
	w.register("c2", "4", corev1.ConditionFalse)
	w.expect(t, "it has registered", "c2 PoweringUp requested, due in 45")
	w.register("c2", "4", corev1.ConditionTrue)
	w.expect(t, "it is ready", "c2 Running requested")
	delete(w.held, "c2")
	w.busy["c2"] = true
	w.expect(t, "pods of others", "c2 Running requested")
	w.busy["c2"] = false
	w.expect(t, "it is idle", "c2 Running requested, due in 100")
	w.now = w.now.Add(50 * time.Second)
	w.planned["c2"] = w.now.Add(70 * time.Second)
	w.expect(t, "a job is planned", "c2 Running requested, due in 71")
	w.now = w.now.Add(50 * time.Second)
	w.expect(t, "it is kept for the job", "c2 Running requested, due in 21")
	delete(w.planned, "c2")
	w.expect(t, "nothing is planned", "c2 PoweringDown, due in 30")
	w.accept()
	w.now = w.now.Add(30 * time.Second)
	w.expect(t, "it is still there", "c2 PoweringDown (SuspendTimeout reached), due in 30")
	w.accept()
	w.register("c2", "4", corev1.ConditionUnknown)
	w.now = w.now.Add(30 * time.Second)
	w.expect(t, "its object is still there", "c2 PoweringDown requested (SuspendTimeout reached), due in 30")
	delete(w.nodes, "c2")
	w.expect(t, "it is gone", "")
}

func TestNodeThatDoesNotCome(t *testing.T) {
	w := newWorld()
	w.held["c1"] = true
	wait := []string{
		"c1 Failed failures 1 (ResumeTimeout reached), due in 60",
		"c1 Failed failures 2 (ResumeTimeout reached), due in 120",
		"c1 Failed failures 3 (ResumeTimeout reached)",
	}
	w.next()
	for i := range wait {
		w.accept()
		w.held["c1"] = true
		w.now = w.now.Add(60 * time.Second)
		w.expect(t, "it is late", fmt.Sprintf("c1 PoweringDown failures %d (ResumeTimeout reached), due in 30", i+1))
		delete(w.held, "c1")
		w.accept()
		w.now = w.now.Add(30 * time.Second)
		w.expect(t, "its request is withdrawn", wait[i])
		w.held["c1"] = true
		w.now = w.now.Add(time.Minute << i)
		if again := w.next(); i < 2 != strings.Contains(again, "PoweringUp") {
			t.Errorf("after failure %d: %s", i+1, again)
		}
	}
	delete(w.held, "c1")
	w.register("c1", "4", corev1.ConditionTrue)
	w.expect(t, "it comes after all", "c1 PoweringDown failures 3 (ResumeTimeout reached), due in 30")
}

func TestNodeWithLess(t *testing.T) {
	w := newWorld()
	w.held["c1"] = true
	w.next()
	w.accept()
	w.register("c1", "2", corev1.ConditionTrue)
	w.expect(t, "it has too few CPUs", "c1 PoweringDown failures 3 (Low CPUs (reported:2 < configured:4)), due in 30")
}

func TestPlannedNodeBootsInTime(t *testing.T) {
	w := newWorld()
	w.planned["c1"] = w.now.Add(50 * time.Second)
	w.expect(t, "too early", "due in 30")
	w.now = w.now.Add(30 * time.Second)
	w.expect(t, "in time", "c1 PoweringUp, due in 60")
}

func TestNodesOfOthersAndVanishedOnes(t *testing.T) {
	w := newWorld()
	w.register("c3", "4", corev1.ConditionTrue)
	w.held["c3"] = true
	w.expect(t, "somebody started it", "c3 Running requested")
	delete(w.nodes, "c3")
	w.expect(t, "it has vanished", "c3 PoweringDown (the node has vanished), due in 30")
	w.pool.Spec.Nodes = "c[1-2]"
	w.accept()
	w.now = w.now.Add(30 * time.Second)
	w.expect(t, "the pool does not have it any more", "")
}

func TestPowerDownWaitsForJobs(t *testing.T) {
	w := newWorld()
	w.register("c1", "4", corev1.ConditionTrue)
	w.held["c1"] = true
	w.next()
	w.pool.Status.Nodes[0].PowerDown = true
	w.expect(t, "a job runs", "c1 Running requested")
	delete(w.held, "c1")
	w.expect(t, "it has ended", "c1 PoweringDown, due in 30")
}

func TestMergeAddsNodesThatDoNotRun(t *testing.T) {
	w := newWorld()
	w.pool.Spec.Features = []string{"fast"}
	w.register("c1", "2", corev1.ConditionFalse)
	w.pool.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "c1", State: v1alpha1.PoolPoweringUp, Since: metav1.NewMicroTime(start.Add(-5 * time.Second))},
		{Name: "c2", State: v1alpha1.PoolFailed, Reason: "broken"},
	}
	nodes, power := Merge([]*v1alpha1.NodePool{w.pool}, []*corev1.Node{w.nodes["c1"]}, start)
	if len(nodes) != 3 || len(power) != 3 {
		t.Fatalf("%d nodes, %d states", len(nodes), len(power))
	}
	for i, want := range []struct {
		name string
		boot time.Duration
		ok   bool
	}{{"c1", 15 * time.Second, true}, {"c2", 0, false}, {"c3", 20 * time.Second, true}} {
		p := power[want.name]
		if n := nodes[i]; n.Name != want.name || p.Boot != want.boot || p.IsUsable() != want.ok ||
			n.Status.Allocatable.Cpu().Value() != 4 || n.Labels["feature.berth.hpc/fast"] != "true" {
			t.Errorf("%s: boots in %v, usable %v: %+v", n.Name, p.Boot, p.IsUsable(), n)
		}
	}
	other := w.pool.DeepCopy()
	other.Name, other.Spec.Nodes = "zone-b", "c[3-5]"
	assigned := Assign([]*v1alpha1.NodePool{other, w.pool})
	if got := fmt.Sprint(assigned); got != "map[cloud:[c1 c2 c3] zone-b:[c4 c5]]" {
		t.Error(got)
	}
	if got := problemOf(other, assigned["zone-b"]); got != "c3 belongs to another pool too, which is used" {
		t.Error(got)
	}
}

// A node that has vanished is not free for jobs, though the status does not yet say that it is gone.
func TestVanishedNodeIsNotFree(t *testing.T) {
	p := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: v1alpha1.NodePoolSpec{Nodes: "c1"}}
	p.Status.Nodes = []v1alpha1.PoolNode{{Name: "c1", State: v1alpha1.PoolRunning, Requested: true}}
	_, power := Merge([]*v1alpha1.NodePool{p}, nil, start)
	if c1 := power["c1"]; c1.IsUsable() {
		t.Errorf("it is %s", c1.State)
	}
}

// A node that is ready, but to which no pod can be bound yet, is still booting.
func TestNodeIsReadyWhenPodsCanBeBound(t *testing.T) {
	w := newWorld()
	w.held["c1"] = true
	w.next()
	w.accept()
	for _, taint := range []string{corev1.TaintNodeNotReady, taintUninitialized} {
		w.register("c1", "4", corev1.ConditionTrue)
		w.nodes["c1"].Spec.Taints = []corev1.Taint{{Key: taint, Effect: corev1.TaintEffectNoSchedule}}
		w.expect(t, taint, "c1 PoweringUp requested, due in 60")
	}
	w.nodes["c1"].Spec.Taints = nil
	w.expect(t, "no taint is left", "c1 Running requested")
}

// The nodes of a pool that is deleted are removed, and no others are offered or requested.
func TestPoolThatIsDeleted(t *testing.T) {
	w := newWorld()
	w.register("c1", "4", corev1.ConditionTrue)
	w.pool.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "c2", State: v1alpha1.PoolFailed, Failures: 3, Since: metav1.NewMicroTime(start)},
	}
	w.pool.DeletionTimestamp = &metav1.Time{Time: start}
	w.held["c3"] = true
	w.expect(t, "one runs, one has failed", "c1 PoweringDown, due in 30")
	_, power := Merge([]*v1alpha1.NodePool{w.pool}, []*corev1.Node{w.nodes["c1"]}, start)
	for name, p := range power {
		if p.IsUsable() {
			t.Errorf("%s is usable", name)
		}
	}
}
