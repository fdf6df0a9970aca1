package power

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// provisioning is the Provider of pools whose nodes cluster-autoscaler brings: one
// ProvisioningRequest for the nodes that are needed together. The nodes that come get the names
// of the pool in the order of their age. Cluster-autoscaler removes a node when it is idle; the
// pool keeps it from that until the node is to go.
type provisioning struct{ cluster *control.Cluster }

var provisioningKind = schema.GroupVersionKind{
	Group: "autoscaling.x-k8s.io", Version: "v1", Kind: "ProvisioningRequest",
}

// defaultProvisioningClass brings all nodes of a request or none.
const defaultProvisioningClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

// annotationNoScaleDown on a Node keeps cluster-autoscaler from removing it.
const annotationNoScaleDown = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

// errNoProvisioning is the error if the cluster has no ProvisioningRequests.
var errNoProvisioning = errors.New(
	"the cluster has no ProvisioningRequests (autoscaling.x-k8s.io/v1): install their resource definition, " +
		"and start cluster-autoscaler with --enable-provisioning-requests")

func (r provisioning) Resume(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	all, err := r.requests(ctx, pool)
	if err != nil {
		return r.explained(err)
	}
	asked := map[string]bool{} // by a request that was not recorded as accepted
	for i := range all {
		if !hasFailed(&all[i]) {
			for _, name := range namesOf(&all[i]) {
				asked[name] = true
			}
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return asked[name] })
	if len(nodes) == 0 {
		return nil
	}
	q := newProvisioningRequest(pool, nodes)
	if err := r.cluster.Client.Create(ctx, q); client.IgnoreAlreadyExists(err) != nil {
		return r.explained(err)
	} else if err != nil {
		return fmt.Errorf("ProvisioningRequest %s is still being deleted", q.GetName())
	}
	// The request waits for its template. If it is never made, Suspend removes the request.
	return r.explained(r.cluster.Client.Create(ctx, podTemplate(pool, q)))
}

func (r provisioning) Suspend(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	for _, n := range r.cluster.Nodes.List() {
		name := n.Annotations[wire.AnnotationNodeName]
		if !slices.Contains(nodes, name) || !isNamed(n, pool, name) || n.Annotations[annotationNoScaleDown] == "" {
			continue
		}
		free := n.DeepCopy()
		delete(free.Annotations, annotationNoScaleDown)
		err := r.cluster.Client.Patch(ctx, free, client.MergeFrom(n))
		if client.IgnoreNotFound(err) != nil {
			return r.explained(err)
		}
		if err == nil {
			r.cluster.Nodes.Apply(free)
		}
	}
	all, err := r.requests(ctx, pool)
	if err != nil {
		return r.explained(err)
	}
	return r.explained(r.tidy(ctx, pool, all))
}

func (provisioning) Failed(context.Context, *v1alpha1.NodePool, []string) error { return nil }

func (r provisioning) Progress(
	ctx context.Context, pool *v1alpha1.NodePool, nodes []string,
) (map[string]Progress, error) {
	all, err := r.requests(ctx, pool)
	if err != nil {
		return nil, r.explained(err)
	}
	if err := r.nameNodes(ctx, pool, nodes); err != nil {
		return nil, r.explained(err)
	}
	if err := r.tidy(ctx, pool, all); err != nil {
		return nil, r.explained(err)
	}
	out := map[string]Progress{}
	for i := range all {
		p := provisioningProgress(&all[i])
		for _, name := range namesOf(&all[i]) {
			if slices.Contains(nodes, name) {
				out[name] = p
			}
		}
	}
	for _, name := range nodes {
		_, asked := out[name]
		if came := r.named(pool, name); came != nil {
			out[name] = Progress{Text: "node " + came.Name + " is not ready"}
		} else if !asked {
			out[name] = Progress{Text: "its ProvisioningRequest was deleted", Refused: true}
		}
	}
	return out, nil
}

// nameNodes gives the names to nodes of the node group that have none, the oldest first.
func (r provisioning) nameNodes(ctx context.Context, pool *v1alpha1.NodePool, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return r.named(pool, name) != nil })
	group := labels.SelectorFromSet(pool.Spec.ProvisioningRequest.NodeSelector)
	var nodes []*corev1.Node
	for _, n := range r.cluster.Nodes.List() {
		isNamed := n.Annotations[wire.AnnotationNodeName] != ""
		if !isNamed && n.DeletionTimestamp == nil && group.Matches(labels.Set(n.Labels)) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, oldestFirst)
	for i := range min(len(names), len(nodes)) {
		keep := map[string]string{annotationNoScaleDown: "true"}
		if err := nameNode(ctx, r.cluster, pool, nodes[i], names[i], keep); err != nil {
			return err
		}
	}
	return nil
}

// named returns the object of the pool's node with that name, or nil.
func (r provisioning) named(pool *v1alpha1.NodePool, name string) *corev1.Node {
	for _, n := range r.cluster.NodesNamed(name) {
		if isNamed(n, pool, name) && n.DeletionTimestamp == nil {
			return n
		}
	}
	return nil
}

// tidy deletes requests whose nodes have all come, or are not wanted any more: a request books
// its capacity for pods that are not Berth's.
func (r provisioning) tidy(ctx context.Context, pool *v1alpha1.NodePool, all []unstructured.Unstructured) error {
	coming := inStates(pool, v1alpha1.PoolPoweringUp)
	for i := range all {
		waited := slices.ContainsFunc(namesOf(&all[i]), func(name string) bool {
			return slices.Contains(coming, name) && r.named(pool, name) == nil
		})
		if waited {
			continue
		}
		uid := all[i].GetUID()
		err := r.cluster.Client.Delete(ctx, &all[i], client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// requests returns the ProvisioningRequests of the pool.
func (r provisioning) requests(ctx context.Context, pool *v1alpha1.NodePool) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(provisioningKind.GroupVersion().WithKind(provisioningKind.Kind + "List"))
	err := r.cluster.Client.List(ctx, list, client.InNamespace(pool.Spec.ProvisioningRequest.Namespace),
		client.MatchingLabels{wire.LabelNodePool: pool.Name})
	return slices.DeleteFunc(list.Items, func(q unstructured.Unstructured) bool {
		return q.GetDeletionTimestamp() != nil
	}), err
}

// explained replaces errors by ones that say what to do.
func (provisioning) explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return errNoProvisioning
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (set nodePools.provider of the chart to provisioningRequest)", err)
	}
	return err
}

// namesOf returns the nodes that a ProvisioningRequest brings.
func namesOf(q *unstructured.Unstructured) []string {
	names, _ := hostlist.ExpandLenient(q.GetAnnotations()[wire.AnnotationNodes])
	return names
}

// hasFailed reports whether cluster-autoscaler has given the request up.
func hasFailed(q *unstructured.Unstructured) bool { return isTrue(q, "Failed") }

func isTrue(q *unstructured.Unstructured, kind string) bool {
	return text(conditionOf(q, kind), "status") == string(metav1.ConditionTrue)
}

// provisioningProgress returns what cluster-autoscaler says of a request.
func provisioningProgress(q *unstructured.Unstructured) Progress {
	prefix := "ProvisioningRequest " + q.GetName() + ": "
	for _, kind := range []string{"Failed", "CapacityRevoked"} {
		if isTrue(q, kind) {
			c := conditionOf(q, kind)
			return Progress{Text: prefix + text(c, "reason") + ": " + text(c, "message"), Refused: true}
		}
	}
	if missing := missingCondition(q, "Accepted", "Provisioned"); missing != "" {
		return Progress{Text: prefix + missing}
	}
	if isTrue(q, "Provisioned") {
		return Progress{Text: prefix + "provisioned, no node has come"}
	}
	return Progress{Text: prefix + "cluster-autoscaler has not accepted it"}
}

// newProvisioningRequest returns the request for nodes of the pool that are needed together. Its
// name follows from the nodes and from when they were requested.
func newProvisioningRequest(pool *v1alpha1.NodePool, nodes []string) *unstructured.Unstructured {
	s := pool.Spec.ProvisioningRequest
	hash := sha256.New()
	for _, name := range nodes {
		n, _ := pool.Status.Node(name)
		fmt.Fprintln(hash, name, n.Since.UnixMicro())
	}
	name := strings.ReplaceAll(pool.Name, ".", "-")
	name = "berth-" + name[:min(len(name), 40)] + "-" + hex.EncodeToString(hash.Sum(nil))[:10]
	spec := map[string]any{
		"provisioningClassName": cmp.Or(s.ProvisioningClassName, defaultProvisioningClass),
		"podSets": []any{map[string]any{
			"count": int64(len(nodes)), "podTemplateRef": map[string]any{"name": name},
		}},
	}
	if len(s.Parameters) > 0 {
		parameters := map[string]any{}
		for key, value := range s.Parameters {
			parameters[key] = value
		}
		spec["parameters"] = parameters
	}
	q := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	q.SetGroupVersionKind(provisioningKind)
	q.SetNamespace(s.Namespace)
	q.SetName(name)
	q.SetLabels(map[string]string{wire.LabelNodePool: pool.Name})
	q.SetAnnotations(map[string]string{wire.AnnotationNodes: hostlist.Fold(nodes)})
	return q
}

// podTemplate returns the template of the pods of a request: one that fills a node. It is
// deleted with the request.
func podTemplate(pool *v1alpha1.NodePool, q *unstructured.Unstructured) *corev1.PodTemplate {
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: q.GetNamespace(), Name: q.GetName(), Labels: q.GetLabels(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: provisioningKind.GroupVersion().String(), Kind: provisioningKind.Kind,
			Name: q.GetName(), UID: q.GetUID(),
		}},
	}}
	for _, taint := range pool.Spec.Taints {
		t.Template.Spec.Tolerations = append(t.Template.Spec.Tolerations, corev1.Toleration{
			Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect,
		})
	}
	t.Template.Spec.NodeSelector = pool.Spec.ProvisioningRequest.NodeSelector
	// An idle node of the pool would satisfy the request, but the job needs further ones.
	t.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: wire.LabelNodePool, Operator: corev1.NodeSelectorOpDoesNotExist},
			}}},
		},
	}}
	t.Template.Spec.Containers = []corev1.Container{{
		Name: "node", Image: "none",
		Resources: corev1.ResourceRequirements{Requests: pool.Spec.Resources, Limits: extended(pool.Spec.Resources)},
	}}
	return t
}

// extended returns the extended resources of the list, which a container must also limit.
func extended(all corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range all {
		if strings.Contains(string(name), "/") {
			out[name] = quantity
		}
	}
	return out
}
