package keeper

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// The object of a node of a pool comes with a name that its provider chose: the job waits for
// that object, and its pods are bound to it.
func TestNodeThatItsProviderNames(t *testing.T) {
	b := schedtest.Attempt(v1alpha1.StateConfiguring)
	b.Name, b.Namespace = "j", "user-a"
	b.Status.Allocation.Nodes = []v1alpha1.NodeAllocation{{Name: "d1", Node: "d1", CPUs: 1, Tasks: 1}}
	c := fake.Cluster(interceptor.Funcs{}, b)
	k := newKeeper(c)
	stored := &v1alpha1.BatchJob{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), stored); err != nil {
		t.Fatal(err)
	}
	c.ApplyJob(stored)
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	pool.Spec.Nodes = "d[1-2]"
	pool.Status.Nodes = []v1alpha1.PoolNode{{Name: "d1", State: v1alpha1.PoolPoweringUp, Since: metav1.NewMicroTime(t0)}}
	fake.Feed(c, pool)
	if !k.boot("d1").Waiting || !k.nodeLost("d1") {
		t.Error("the job does not wait")
	}

	n := schedtest.Node("ip-10-0-0-7")
	n.Annotations = map[string]string{"berth.hpc/node-name": "d1"}
	fake.Feed(c, n)
	pool = pool.DeepCopy()
	pool.Status.Nodes[0].State, pool.Status.Nodes[0].Force = v1alpha1.PoolRunning, true
	fake.Feed(c, pool)
	for _, name := range []string{"d1", "ip-10-0-0-7"} {
		if got := k.boot(name); got.Waiting || got.Failed != "" || !got.Ready.Equal(t0) {
			t.Errorf("%s: %+v", name, got)
		}
		if k.nodeLost(name) || !k.nodeDown(name) {
			t.Errorf("%s: lost %v, down %v", name, k.nodeLost(name), k.nodeDown(name))
		}
	}
	job, _ := c.Job(b.Spec.JobID)
	if err := k.create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job, _ = c.Job(b.Spec.JobID)
	if a := job.Status.Allocation.Nodes[0]; a.Name != "d1" || a.ObjectName() != "ip-10-0-0-7" {
		t.Errorf("the allocation is %+v", a)
	}
	c.Nodes.Remove(n, t0)
	if !k.nodeLost("ip-10-0-0-7") {
		t.Error("a node that is gone is not lost")
	}
}

// A node whose kubelet has no CPU manager gives no CPUs to a pod alone, whatever its agent reports.
func TestSharedCPUs(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := newKeeper(c)
	for policy, want := range map[string]bool{"": false, "none": true, "static": false} {
		n := schedtest.Node("n-" + policy)
		n.Annotations = map[string]string{"berth.hpc/cpu-manager": policy}
		fake.Feed(c, n)
		if got := k.hasSharedCPUs(n.Name); got != want {
			t.Errorf("policy %q: %v, want %v", policy, got, want)
		}
	}
}
