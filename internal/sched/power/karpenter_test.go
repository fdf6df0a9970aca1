package power

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"

	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// karpenterBench is a bench whose pool Karpenter brings nodes of.
func karpenterBench(t *testing.T, hooks interceptor.Funcs) *bench {
	t.Helper()
	return poolBench(t, hooks, func(s *v1alpha1.NodePoolSpec) {
		s.Features, s.Sockets = []string{"rented"}, 2
		s.Labels = map[string]string{"topology.kubernetes.io/zone": "a", "rack": "r1"}
		s.Taints = []corev1.Taint{{Key: "hpc", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		s.Karpenter = &v1alpha1.NodeKarpenter{
			NodeClassRef: v1alpha1.NodeClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
			Requirements: []corev1.NodeSelectorRequirement{
				{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"c-4x"}},
			},
		}
	}, nodeClaimKind)
}

// poolBench is a bench whose pool is completed by spec. The API has objects of the kinds.
func poolBench(
	t *testing.T, hooks interceptor.Funcs, spec func(*v1alpha1.NodePoolSpec), kinds ...schema.GroupVersionKind,
) *bench {
	t.Helper()
	scheme := control.NewScheme()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{deploymentKind.GroupVersion()})
	for _, k := range kinds {
		mapper.Add(k, meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
	}
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud", Finalizers: []string{wire.Finalizer}}}
	wait := int32(100)
	pool.Spec = v1alpha1.NodePoolSpec{
		Nodes: "c[1-3]", BootTime: 20, SuspendTime: &wait,
		Resources: corev1.ResourceList{"cpu": resource.MustParse("4")},
	}
	spec(&pool.Spec)
	b := &bench{t: t, clock: time.Unix(1_000_000, 0), planned: map[string]time.Time{}}
	b.c = fake.Stores(fakeclient.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(pool).
		WithStatusSubresource(&v1alpha1.NodePool{}).WithInterceptorFuncs(hooks).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string {
			return []string{o.(*corev1.Event).InvolvedObject.Kind}
		}).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		Build())
	b.restart()
	stored := &v1alpha1.NodePool{}
	if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored); err != nil {
		t.Fatal(err)
	}
	b.c.NodePools.Apply(stored)
	return b
}

// come creates the object of a node that is ready.
func (b *bench) come(name string, labels map[string]string) *corev1.Node {
	b.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, UID: types.UID(name)}}
	n.Spec.ProviderID = "test://" + name
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := b.c.Client.Create(b.t.Context(), n); err != nil {
		b.t.Fatal(err)
	}
	b.c.Nodes.Apply(n)
	return n
}

// poolName returns the name that a pool has for the object of a node; "": none.
func (b *bench) poolName(object string) string {
	b.t.Helper()
	n := &corev1.Node{}
	if err := b.c.Client.Get(b.t.Context(), client.ObjectKey{Name: object}, n); err != nil {
		b.t.Fatal(err)
	}
	return n.Annotations[wire.AnnotationNodeName]
}

func (b *bench) claim(name string) *unstructured.Unstructured {
	b.t.Helper()
	c, err := karpenter{b.c.Client}.get(b.t.Context(), name)
	if err != nil {
		return nil
	}
	return c
}

// change writes a change of the NodeClaim, as Karpenter does.
func (b *bench) change(name string, change func(*unstructured.Unstructured)) {
	b.t.Helper()
	c := b.claim(name)
	change(c)
	if err := b.c.Client.Update(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) node(name string) v1alpha1.PoolNode {
	p, _ := b.c.NodePools.Get("cloud")
	n, _ := p.Status.Node(name)
	return n
}

// Karpenter names the Node object; the pool's node is found by the annotation.
func TestKarpenterBringsExactlyTheNodesOfTheJob(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	b.place(1, "c1", "c3")
	b.expect("requested", b.step(), "c1 PoweringUp, c3 PoweringUp")
	if b.claim("c1") == nil || b.claim("c2") != nil || b.claim("c3") == nil {
		t.Fatal("not exactly the NodeClaims of the job's nodes")
	}
	for name, object := range map[string]string{"c1": "kwok-c1-x", "c3": "kwok-c3-y"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: object, Annotations: map[string]string{wire.AnnotationNodeName: name}, Labels: map[string]string{},
		}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		fake.Feed(b.c, n)
		b.expect("Karpenter has not seen it", b.states()[:2], "c1")
		n = n.DeepCopy()
		n.Labels["karpenter.sh/initialized"] = "true"
		fake.Feed(b.c, n)
	}
	b.expect("initialized", b.step(), "c1 Running, c3 Running")
	b.endJob(1)
	b.step()
	b.clock = b.clock.Add(100 * time.Second)
	b.expect("idle for long", b.step(), "c1 PoweringDown, c3 PoweringDown")
	if b.claim("c1") != nil || b.claim("c3") != nil {
		t.Error("the NodeClaims are still there")
	}
}

func TestNodeClaimSaysWhatThePoolPromises(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	b.place(1, "c2")
	b.step()
	c := b.claim("c2")
	want := map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
		"requirements": []any{
			map[string]any{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []any{"c-4x"}},
			map[string]any{"key": "topology.kubernetes.io/zone", "operator": "In", "values": []any{"a"}},
		},
		"resources":   map[string]any{"requests": map[string]any{"cpu": "4"}},
		"taints":      []any{map[string]any{"key": "hpc", "value": "yes", "effect": "NoSchedule"}},
		"expireAfter": "Never",
	}
	if !equality.Semantic.DeepEqual(c.Object["spec"], want) {
		t.Errorf("the spec is %v, want %v", c.Object["spec"], want)
	}
	labels := map[string]string{"rack": "r1", "feature.berth.hpc/rented": "true", "berth.hpc/node-pool": "cloud"}
	if !equality.Semantic.DeepEqual(c.GetLabels(), labels) {
		t.Errorf("the labels are %v, want %v", c.GetLabels(), labels)
	}
	annotations := map[string]string{
		"berth.hpc/node-name": "c2", "karpenter.sh/do-not-disrupt": "true", "berth.hpc/sockets": "2",
	}
	if !equality.Semantic.DeepEqual(c.GetAnnotations(), annotations) {
		t.Errorf("the annotations are %v, want %v", c.GetAnnotations(), annotations)
	}
}

// What Karpenter says about a node that has not come is in the status, and in the reason when
// ResumeTimeout is over.
func TestNodeClaimThatDoesNotLaunch(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	b.place(1, "c2")
	b.step()
	b.change("c2", func(c *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(c.Object, []any{
			map[string]any{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "no such type"},
			map[string]any{"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "message": "x"},
		}, "status", "conditions")
	})
	b.expect("it waits", b.step(), "c2 PoweringUp")
	b.expect("why", b.node("c2").Progress, "not launched: LaunchFailed: no such type")
	b.clock = b.clock.Add(time.Minute)
	b.expect("too late", b.step(), "c2 PoweringDown")
	b.expect("the reason", b.node("c2").Reason, "ResumeTimeout reached: not launched: LaunchFailed: no such type")
	if b.claim("c2") != nil {
		t.Error("the NodeClaim is still there")
	}
}

// Karpenter deletes the NodeClaim of a node for which there is no capacity: that is known at
// once, and its jobs need not wait for ResumeTimeout.
func TestNodeClaimThatKarpenterDeletes(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	b.place(1, "c2")
	b.step()
	if err := b.c.Client.Delete(t.Context(), b.claim("c2")); err != nil {
		t.Fatal(err)
	}
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, Type: corev1.EventTypeWarning,
		Reason: "InsufficientCapacityError", Message: "NodeClaim c2 event: sold out",
		InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: "c2"}}
	if err := b.c.Client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	b.step()
	b.expect("refused", b.step(), "c2 PoweringDown")
	b.expect("the reason", b.node("c2").Reason, "Karpenter deleted its NodeClaim: InsufficientCapacityError: sold out")
	if n := b.node("c2"); n.Failures != 1 || n.Refused || n.Progress != "" {
		t.Errorf("the state is %+v", n)
	}
}

// A NodeClaim of somebody else with the name of a node is left alone.
func TestForeignNodeClaim(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(nodeClaimKind)
	c.SetName("c2")
	if err := b.c.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	p, _ := b.c.NodePools.Get("cloud")
	k := karpenter{b.c.Client}
	err := k.Resume(t.Context(), p, []string{"c2"})
	if err == nil || err.Error() != "NodeClaim c2 exists and does not belong to this pool" {
		t.Errorf("the error is %v", err)
	}
	if err := k.Suspend(t.Context(), p, []string{"c2"}); err != nil {
		t.Error(err)
	}
	if b.claim("c2") == nil {
		t.Error("it was deleted")
	}
}

// A request that is repeated, because it was not recorded, finds its NodeClaims.
func TestRepeatedRequestsForNodeClaims(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	p, _ := b.c.NodePools.Get("cloud")
	k := karpenter{b.c.Client}
	for range 2 {
		if err := k.Resume(t.Context(), p, []string{"c1", "c2"}); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := k.Suspend(t.Context(), p, []string{"c1", "c2"}); err != nil {
			t.Error(err)
		}
	}
}

func TestClusterWithoutKarpenter(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: nodeClaimKind.GroupKind()}
	b := karpenterBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return missing },
	})
	p, _ := b.c.NodePools.Get("cloud")
	err := karpenter{b.c.Client}.Resume(t.Context(), p, []string{"c1", "c2"})
	if !errors.Is(err, errNoKarpenter) || err.Error() != errNoKarpenter.Error() {
		t.Errorf("the error is %v", err)
	}
	b.place(1, "c2")
	b.expect("not requested", b.step(), "c2 PoweringUp?")
	const why = "its request failed: Karpenter is not installed: the cluster has no NodeClaims (karpenter.sh/v1)"
	b.expect("why", b.node("c2").Progress, why)
	b.clock = b.clock.Add(time.Minute)
	b.step()
	b.expect("the reason", b.node("c2").Reason, "ResumeTimeout reached: "+why)
}

// Karpenter died after it had launched a node, and launched it again. The one that it registers
// is the node of the pool; the other gets no job, and its object is deleted.
func TestNodeThatWasLaunchedTwice(t *testing.T) {
	b := karpenterBench(t, interceptor.Funcs{})
	b.place(1, "c1")
	b.step()
	for object, registered := range map[string]bool{"kwok-c1-a": false, "kwok-c1-b": true} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: object, Annotations: map[string]string{wire.AnnotationNodeName: "c1"},
			Labels: map[string]string{wire.LabelNodePool: "cloud"},
		}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if registered {
			n.Labels["karpenter.sh/initialized"] = "true"
		} else {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
		}
		if err := b.c.Client.Create(t.Context(), n.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		fake.Feed(b.c, n)
	}
	b.expect("one of both", b.step(), "c1 Running")
	if n := b.Controller.node("c1"); n == nil || n.Name != "kwok-c1-b" {
		t.Errorf("the node is %v", n)
	}
	left := &corev1.NodeList{}
	if err := b.c.Client.List(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != "kwok-c1-b" {
		t.Errorf("%d objects are left", len(left.Items))
	}
}
