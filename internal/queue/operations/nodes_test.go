package operations_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// A long reason of a node is cut between two characters.
func TestLongReasonOfANode(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c := clusterOf(fake.Cluster(interceptor.Funcs{}, n))
	op := status.Operation{
		Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{"n1"},
		Set: map[string]string{"State": "DRAIN", "Reason": "x" + strings.Repeat("ü", 300)},
	}
	if got := c.operation(t, "opal", op); got.Error != "" {
		t.Fatal(got.Error)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		t.Fatal(err)
	}
	reason := n.Annotations[wire.AnnotationReason]
	if !utf8.ValidString(reason) || strings.ContainsRune(reason, utf8.RuneError) || !strings.HasPrefix(reason, "xü") {
		t.Errorf("%q", reason)
	}
}

// Operators bring nodes of a pool and remove them; a node that failed is brought again.
func TestNodesOfAPoolArePowered(t *testing.T) {
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	pool.Spec.Nodes = "c[1-4]"
	pool.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "c2", State: v1alpha1.PoolRunning}, {Name: "c3", State: v1alpha1.PoolFailed, Failures: 3, Reason: "late"},
		{Name: "c4", State: v1alpha1.PoolRunning},
	}
	c := clusterOf(fake.Cluster(interceptor.Funcs{}, pool))
	stored := func() *v1alpha1.NodePool {
		p := &v1alpha1.NodePool{}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	c.NodePools.Apply(stored())
	off := []string{"CLOUD", "POWERED_DOWN"}
	c.nodes = []status.Node{
		{Name: "n1", State: "IDLE"}, {Name: "c1", State: "IDLE", Flags: off}, {Name: "c2", State: "MIXED"},
		{Name: "c3", State: "DOWN", Flags: off}, {Name: "c4", State: "MIXED"},
	}
	set := func(user, node, state string) string {
		op := status.Operation{
			Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{node},
			Set: map[string]string{"State": state},
		}
		return c.operation(t, user, op).Error
	}
	for _, x := range [][2]string{
		{"c1", "POWER_UP"}, {"c2", "POWER_DOWN"}, {"c3", "RESUME"}, {"c4", "POWER_DOWN_FORCE"},
	} {
		if err := set("opal", x[0], x[1]); err != "" {
			t.Errorf("%s %s: %s", x[0], x[1], err)
		}
	}
	if err := set("opal", "n1", "POWER_DOWN"); err == "" {
		t.Error("a node of no pool is removed")
	}
	want := map[string]v1alpha1.PoolNode{
		"c1": {State: v1alpha1.PoolPoweringUp}, "c2": {State: v1alpha1.PoolRunning, PowerDown: true},
		"c3": {State: v1alpha1.PoolPoweredDown}, "c4": {State: v1alpha1.PoolRunning, PowerDown: true, Force: true},
	}
	for name, w := range want {
		n, _ := stored().Status.Node(name)
		if n.State != w.State || n.PowerDown != w.PowerDown || n.Force != w.Force || n.Failures != 0 || n.Reason != "" {
			t.Errorf("%s: %+v, want %+v", name, n, w)
		}
	}
}

// A node that was drained a moment ago can be resumed, although the newest plan does not show it
// as drained yet; one that is in no such state cannot.
func TestNodeIsResumedAtOnce(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c := clusterOf(fake.Cluster(interceptor.Funcs{}, n))
	c.nodes = []status.Node{{Name: "n1", State: "IDLE"}} // all the time
	update := func(set map[string]string) string {
		t.Helper()
		return c.operation(t, "opal", status.Operation{
			Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{"n1"}, Set: set,
		}).Error
	}
	if got := update(map[string]string{"State": "RESUME"}); got != "Invalid node state specified" {
		t.Errorf("resuming a node that is idle: %q", got)
	}
	if got := update(map[string]string{"State": "DRAIN", "Reason": "fan"}); got != "" {
		t.Fatal(got)
	}
	if got := update(map[string]string{"State": "RESUME"}); got != "" {
		t.Errorf("resuming the node: %q", got)
	}
}

// A change of a node returns when the rows of the nodes show it.
func TestNodeChangeIsShown(t *testing.T) {
	for _, set := range []map[string]string{{"State": "DRAIN", "Reason": "fan"}, {"Weight": "9"}} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		c := clusterOf(fake.Cluster(interceptor.Funcs{}, n))
		c.service.StateTimeout = time.Minute
		asked := 0
		c.service.Shows = func(at time.Time) bool { // the third look sees the new plan
			if n, _ := c.Nodes.Get("n1"); len(n.Annotations) == 0 || !at.Equal(c.now) {
				t.Errorf("%v: asked about %v, before the node was changed", set, at)
			}
			asked++
			return asked == 3
		}
		if got := c.operation(t, "opal", status.Operation{
			Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{"n1"}, Set: set,
		}).Error; got != "" {
			t.Fatal(got)
		}
		if asked != 3 {
			t.Errorf("%v: the command returned after %d looks, not when the node was shown", set, asked)
		}
	}
}
