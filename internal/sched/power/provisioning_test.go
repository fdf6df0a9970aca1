package power

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// requestBench is a bench whose pool's nodes cluster-autoscaler brings.
func requestBench(t *testing.T) *bench {
	t.Helper()
	return poolBench(t, interceptor.Funcs{}, func(s *v1alpha1.NodePoolSpec) {
		s.Sockets = 2
		s.Taints = []corev1.Taint{{Key: "hpc", Effect: corev1.TaintEffectNoSchedule}}
		s.ProvisioningRequest = &v1alpha1.NodeProvisioningRequest{
			Namespace: "berth-system", NodeSelector: map[string]string{"group": "g1"},
		}
	}, provisioningKind)
}

func (b *bench) requests() []unstructured.Unstructured {
	b.t.Helper()
	p, _ := b.c.NodePools.Get("cloud")
	all, err := provisioning{b.c}.requests(b.t.Context(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// asked returns the nodes of each request, and how many pods it has.
func (b *bench) asked() string {
	b.t.Helper()
	var out []string
	for _, q := range b.requests() {
		sets, _, _ := unstructured.NestedSlice(q.Object, "spec", "podSets")
		out = append(out, fmt.Sprint(q.GetAnnotations()[wire.AnnotationNodes], " ", sets[0].(map[string]any)["count"]))
	}
	return strings.Join(out, ", ")
}

// condition gives the only request a condition.
func (b *bench) condition(kind, status, reason, message string) {
	b.t.Helper()
	q := &b.requests()[0]
	b.update(q, func() {
		_ = unstructured.SetNestedSlice(q.Object, []any{map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message,
		}}, "status", "conditions")
	})
}

func inGroup() map[string]string { return map[string]string{"group": "g1"} }

// The nodes of a gang are one request. Those that come get the names of the pool, are kept from
// cluster-autoscaler until they are idle, and the request goes when they have come.
func TestRequestForAGang(t *testing.T) {
	b := requestBench(t)
	b.come("foreign", map[string]string{"group": "g2"})
	b.place(1, "c1", "c3")
	b.expect("requested", b.step(), "c1 PoweringUp, c3 PoweringUp")
	b.expect("one request", b.asked(), "c[1,3] 2")
	b.come("g1-x", inGroup())
	b.step()
	b.expect("one has come", b.poolName("g1-x"), "c1")
	b.expect("the request stays", b.asked(), "c[1,3] 2")
	b.come("g1-a", inGroup())
	b.step()
	b.expect("both have come", b.step(), "c1 Running, c3 Running")
	b.expect("their names", b.poolName("g1-x")+b.poolName("g1-a")+b.poolName("foreign"), "c1c3")
	b.expect("the request goes", b.asked(), "")
	n := &corev1.Node{}
	if err := b.c.Client.Get(t.Context(), client.ObjectKey{Name: "g1-a"}, n); err != nil {
		t.Fatal(err)
	}
	b.expect("kept", n.Annotations[annotationNoScaleDown], "true")
	b.expect("geometry", n.Annotations[wire.AnnotationSockets], "2")
	b.endJob(1)
	b.step()
	b.clock = b.clock.Add(100 * time.Second)
	b.expect("idle", b.step(), "c1 PoweringDown, c3 PoweringDown")
	if err := b.c.Client.Get(t.Context(), client.ObjectKey{Name: "g1-a"}, n); err != nil {
		t.Fatal(err)
	}
	b.expect("not kept any more", n.Annotations[annotationNoScaleDown], "")
}

func TestPodsOfARequest(t *testing.T) {
	b := requestBench(t)
	b.place(1, "c2")
	b.step()
	q := b.requests()[0]
	p := &corev1.PodTemplate{}
	if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(&q), p); err != nil {
		t.Fatal(err)
	}
	s := p.Template.Spec
	if s.NodeSelector["group"] != "g1" || s.Containers[0].Resources.Requests.Cpu().Value() != 4 ||
		s.Tolerations[0].Key != "hpc" || !metav1.IsControlledBy(p, &q) && p.OwnerReferences[0].UID != q.GetUID() {
		t.Errorf("the template is %+v", p)
	}
	class, _, _ := unstructured.NestedString(q.Object, "spec", "provisioningClassName")
	b.expect("class", class, "best-effort-atomic-scale-up.autoscaling.x-k8s.io")
}

// A request that is not recorded is repeated, alone or with further nodes: no node is asked for
// twice.
func TestRepeatedProvisioningRequests(t *testing.T) {
	b := requestBench(t)
	b.place(1, "c1", "c2", "c3")
	b.step()
	p, _ := b.c.NodePools.Get("cloud")
	r := provisioning{b.c}
	for range 2 {
		if err := r.Resume(t.Context(), p, []string{"c1", "c2", "c3"}); err != nil {
			t.Error(err)
		}
	}
	b.expect("requests", b.asked(), "c[1-3] 3")
}

// What cluster-autoscaler says is shown, and a request that it has given up is not waited for.
func TestRequestThatFails(t *testing.T) {
	b := requestBench(t)
	b.place(1, "c1")
	b.step()
	name := b.requests()[0].GetName()
	b.step()
	b.expect("nothing known", b.node("c1").Progress,
		"ProvisioningRequest "+name+": cluster-autoscaler has not accepted it")
	b.condition("Provisioned", "False", "CapacityIsNotFound", "Capacity is not found, CA will try to find it later.")
	b.step()
	b.expect("no capacity", b.node("c1").Progress, "ProvisioningRequest "+name+
		": not provisioned: CapacityIsNotFound: Capacity is not found, CA will try to find it later.")
	b.condition("Failed", "True", "Expired", "too old")
	b.step()
	b.expect("given up", b.step(), "c1 PoweringDown")
	b.expect("the reason", b.node("c1").Reason, "ProvisioningRequest "+name+": Expired: too old")
	b.expect("it is deleted", b.asked(), "")
}

// A request that somebody deletes does not come.
func TestRequestThatIsDeleted(t *testing.T) {
	b := requestBench(t)
	b.place(1, "c1")
	b.step()
	if err := b.c.Client.Delete(t.Context(), &b.requests()[0]); err != nil {
		t.Fatal(err)
	}
	b.step()
	b.expect("refused", b.step(), "c1 PoweringDown")
	b.expect("the reason", b.node("c1").Reason, "its ProvisioningRequest was deleted")
}

func TestClusterWithoutProvisioningRequests(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: provisioningKind.GroupKind()}
	b := poolBench(t, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return missing
		},
	}, func(s *v1alpha1.NodePoolSpec) {
		s.ProvisioningRequest = &v1alpha1.NodeProvisioningRequest{Namespace: "x", NodeSelector: inGroup()}
	})
	b.place(1, "c1")
	b.expect("not requested", b.step(), "c1 PoweringUp?")
	b.expect("why", b.node("c1").Progress, "its request failed: "+errNoProvisioning.Error())
}
