package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// clusterAPI is the Provider of pools whose nodes are the Machines of a MachineDeployment. It
// has as many replicas as nodes of the pool are needed. Each Machine gets the name of a node in
// an annotation as soon as it exists, so it is known which Machine has to go with a node.
type clusterAPI struct{ cluster *control.Cluster }

// Group, labels and annotations of Cluster API.
const (
	clusterAPIGroup         = "cluster.x-k8s.io"
	labelDeployment         = clusterAPIGroup + "/deployment-name"
	annotationDeleteMachine = clusterAPIGroup + "/delete-machine"
	// annotationMaxSize makes cluster-autoscaler scale a MachineDeployment.
	annotationMaxSize = clusterAPIGroup + "/cluster-api-autoscaler-node-group-max-size"
)

// errNoClusterAPI is the error if the cluster has no MachineDeployments.
var errNoClusterAPI = errors.New("Cluster API is not installed: the cluster has no MachineDeployments (cluster.x-k8s.io)")

func (a clusterAPI) Resume(ctx context.Context, pool *v1alpha1.NodePool, _ []string) error {
	return a.scale(ctx, pool)
}

func (a clusterAPI) Suspend(ctx context.Context, pool *v1alpha1.NodePool, _ []string) error {
	return a.scale(ctx, pool)
}

func (clusterAPI) Failed(context.Context, *v1alpha1.NodePool, []string) error { return nil }

// scale makes the MachineDeployment have a Machine for each node that the status of the pool
// says is needed. The Machines that have to go are marked before there are fewer replicas.
func (a clusterAPI) scale(ctx context.Context, pool *v1alpha1.NodePool) error {
	d, err := a.deployment(ctx, pool)
	if apierrors.IsNotFound(err) && len(inStates(pool, v1alpha1.PoolPoweringUp)) == 0 {
		return nil // its Machines are gone with it
	}
	if err == nil {
		err = a.take(ctx, pool, d)
	}
	if err != nil {
		return a.explained(err)
	}
	machines, err := a.machines(ctx, pool)
	if err != nil {
		return a.explained(err)
	}
	return a.explained(a.adjust(ctx, pool, d, newFleet(machines)))
}

// adjust marks the Machines that have to go, and writes the number of replicas if it differs.
//
// Cluster API counts a Machine as a replica until it is gone. One that goes would keep it from
// making another one, and a node that is drained may go only days later. So there can be more
// replicas while a Machine is missing; as soon as that exists, they are reduced again.
func (a clusterAPI) adjust(
	ctx context.Context, pool *v1alpha1.NodePool, d *unstructured.Unstructured, f *fleet,
) error {
	needed := map[string]bool{}
	missing := 0
	for _, name := range inStates(pool, v1alpha1.PoolPoweringUp) {
		needed[name] = true
		if f.byName[name] == nil {
			missing++
		}
	}
	for _, name := range inStates(pool, v1alpha1.PoolRunning) {
		if f.byName[name] != nil { // else something else brought it, or its Machine goes
			needed[name] = true
		}
	}
	// Unnamed Machines get the names of missing ones when their progress is asked.
	surplus := slices.Clip(f.unnamed[min(missing, len(f.unnamed)):])
	for name, m := range f.byName {
		if !needed[name] {
			surplus = append(surplus, m)
		}
	}
	for _, m := range surplus {
		if err := a.annotate(ctx, m, map[string]string{annotationDeleteMachine: "true"}); err != nil {
			return err
		}
	}
	replicas := len(needed)
	if missing > len(f.unnamed) {
		replicas = max(replicas, f.replicasToMake(missing-len(f.unnamed), maxSurge(d)))
	}
	if old, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas"); old == int64(replicas) {
		return nil
	}
	patch := []byte(`{"spec":{"replicas":` + strconv.Itoa(replicas) + `}}`)
	return a.cluster.Client.Patch(ctx, d, client.RawPatch("application/merge-patch+json", patch))
}

// take marks the MachineDeployment as that of the pool. One that has Machines already, or that
// cluster-autoscaler scales, is refused: Berth would remove nodes that others use.
func (a clusterAPI) take(ctx context.Context, pool *v1alpha1.NodePool, d *unstructured.Unstructured) error {
	if _, has := d.GetAnnotations()[annotationMaxSize]; has {
		return fmt.Errorf("cluster-autoscaler scales MachineDeployment %s, too (annotation %s)",
			d.GetName(), annotationMaxSize)
	}
	owner, has := d.GetLabels()[wire.LabelNodePool]
	switch {
	case owner == pool.Name:
		return nil
	case has:
		return fmt.Errorf("MachineDeployment %s belongs to node pool %s (label %s)",
			d.GetName(), owner, wire.LabelNodePool)
	}
	if n, found, _ := unstructured.NestedInt64(d.Object, "spec", "replicas"); n > 0 || !found {
		return fmt.Errorf("MachineDeployment %s has machines that Berth did not request: set its replicas to 0, "+
			"or give it the label %s=%s if they may be removed", d.GetName(), wire.LabelNodePool, pool.Name)
	}
	marked := d.DeepCopy()
	marked.SetLabels(merged(d.GetLabels(), map[string]string{wire.LabelNodePool: pool.Name}))
	patch := client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{})
	if err := a.cluster.Client.Patch(ctx, marked, patch); err != nil {
		return err
	}
	marked.DeepCopyInto(d)
	return nil
}

func (a clusterAPI) Progress(
	ctx context.Context, pool *v1alpha1.NodePool, nodes []string,
) (map[string]Progress, error) {
	d, err := a.deployment(ctx, pool)
	if client.IgnoreNotFound(err) != nil {
		return nil, a.explained(err)
	}
	machines, err := a.machines(ctx, pool)
	if err != nil {
		return nil, a.explained(err)
	}
	f := newFleet(machines)
	out := map[string]Progress{}
	for _, name := range nodes {
		if n, _ := pool.Status.Node(name); n.State == v1alpha1.PoolRunning {
			if f.isDeleted(name) {
				out[name] = Progress{Leaves: true}
			}
			continue
		}
		if out[name], err = a.bring(ctx, pool, f, name); err != nil {
			return nil, a.explained(err)
		}
	}
	_, scaled := d.GetAnnotations()[annotationMaxSize]
	if scaled || d.GetLabels()[wire.LabelNodePool] != pool.Name {
		return out, nil // requests say why its replicas are not changed
	}
	return out, a.explained(a.adjust(ctx, pool, d, f))
}

// bring gives the name of a node that is requested to a Machine and to its Node object, and returns
// why the node has not come.
func (a clusterAPI) bring(
	ctx context.Context, pool *v1alpha1.NodePool, f *fleet, name string,
) (Progress, error) {
	m := f.byName[name]
	if m == nil && len(f.unnamed) > 0 {
		m = f.unnamed[0]
		err := a.annotate(ctx, m, map[string]string{wire.AnnotationNodeName: name, annotationDeleteMachine: ""})
		if err != nil {
			return Progress{}, err
		}
		f.byName[name], f.unnamed = m, f.unnamed[1:]
	}
	if m == nil {
		d := pool.Spec.ClusterAPI.MachineDeployment
		return Progress{Text: "MachineDeployment " + d + " has no Machine for it"}, nil
	}
	return machineProgress(m), a.nameNodeOf(ctx, pool, m, name)
}

// machineProgress returns what a Machine says of itself.
func machineProgress(m *unstructured.Unstructured) Progress {
	phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
	text := missingCondition(m, "BootstrapConfigReady", "InfrastructureReady", "NodeReady")
	if text == "" {
		text = cmp.Or(phase, "new")
	}
	return Progress{Text: "Machine " + m.GetName() + ": " + text, Refused: phase == "Failed"}
}

// nameNodeOf names the Node of a Machine, if it has come and has no name yet.
func (a clusterAPI) nameNodeOf(
	ctx context.Context, pool *v1alpha1.NodePool, m *unstructured.Unstructured, name string,
) error {
	node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
	id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
	all := a.cluster.Nodes.List()
	i := slices.IndexFunc(all, func(n *corev1.Node) bool {
		return n.Name == node || id != "" && n.Spec.ProviderID == id
	})
	if i < 0 || isNamed(all[i], pool, name) {
		return nil
	}
	return nameNode(ctx, a.cluster, pool, all[i], name, nil)
}

// deployment reads the MachineDeployment of the pool.
func (a clusterAPI) deployment(ctx context.Context, pool *v1alpha1.NodePool) (*unstructured.Unstructured, error) {
	kind, err := a.kind("MachineDeployment")
	if err != nil {
		return nil, err
	}
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(kind)
	s := pool.Spec.ClusterAPI
	return d, a.cluster.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.MachineDeployment}, d)
}

// machines returns the Machines of the pool's MachineDeployment, the oldest first.
func (a clusterAPI) machines(ctx context.Context, pool *v1alpha1.NodePool) ([]*unstructured.Unstructured, error) {
	kind, err := a.kind("Machine")
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("MachineList"))
	s := pool.Spec.ClusterAPI
	err = a.cluster.Client.List(ctx, list, client.InNamespace(s.Namespace),
		client.MatchingLabels{labelDeployment: s.MachineDeployment})
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, oldestFirst)
	return out, nil
}

// kind returns the kind in the version that the API server prefers.
func (a clusterAPI) kind(name string) (schema.GroupVersionKind, error) {
	m, err := a.cluster.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: clusterAPIGroup, Kind: name})
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return m.GroupVersionKind, nil
}

// annotate writes annotations to a Machine, which must not have changed since it was read. An empty
// value removes an annotation.
func (a clusterAPI) annotate(ctx context.Context, m *unstructured.Unstructured, values map[string]string) error {
	all := merged(m.GetAnnotations(), values)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	if maps.Equal(all, m.GetAnnotations()) {
		return nil
	}
	changed := m.DeepCopy()
	changed.SetAnnotations(all)
	patch := client.MergeFromWithOptions(m, client.MergeFromWithOptimisticLock{})
	if err := a.cluster.Client.Patch(ctx, changed, patch); err != nil {
		return err
	}
	changed.DeepCopyInto(m)
	return nil
}

// explained replaces errors by ones that say what to do.
func (clusterAPI) explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return errNoClusterAPI
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (set nodePools.provider of the chart to clusterAPI)", err)
	}
	return err
}
