package power

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/wire"
)

// karpenter is the Provider of pools whose nodes Karpenter brings. Each node is a NodeClaim of
// its name that belongs to no NodePool of Karpenter: Karpenter launches it, and leaves it to
// Berth when it goes.
type karpenter struct{ client client.Client }

// karpenterGroup is the API group of Karpenter, and the prefix of its labels and annotations.
const karpenterGroup = "karpenter.sh"

var nodeClaimKind = schema.GroupVersionKind{Group: karpenterGroup, Version: "v1", Kind: "NodeClaim"}

// annotationDoNotDisrupt keeps Karpenter from replacing or removing a node on its own.
const annotationDoNotDisrupt = karpenterGroup + "/do-not-disrupt"

// errNoKarpenter is the error if the cluster has no NodeClaims.
var errNoKarpenter = errors.New("Karpenter is not installed: the cluster has no NodeClaims (karpenter.sh/v1)")

// explained replaces the error that the cluster has no NodeClaims by one that says what to do.
func explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return errNoKarpenter
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (set nodePools.provider of the chart to karpenter)", err)
	}
	return err
}

func (k karpenter) Resume(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	return forEach(nodes, func(name string) error {
		c, err := nodeClaim(pool, name)
		if err != nil {
			return err
		}
		err = k.client.Create(ctx, c)
		if apierrors.IsAlreadyExists(err) {
			return k.checkExisting(ctx, pool, name)
		}
		return explained(err)
	})
}

// maxConcurrentRequests bounds the requests about NodeClaims that are made at the same time.
const maxConcurrentRequests = 16

// forEach calls do for every node, several at a time, and returns the errors, each once.
func forEach(nodes []string, do func(name string) error) error {
	failed := make([]error, len(nodes))
	slots := make(chan struct{}, maxConcurrentRequests)
	var wg sync.WaitGroup
	for i, name := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			failed[i] = do(name)
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	return errors.Join(slices.DeleteFunc(failed, func(err error) bool {
		again := err == nil || seen[err.Error()]
		if err != nil {
			seen[err.Error()] = true
		}
		return again
	})...)
}

// checkExisting returns why the NodeClaim that has the name of the node is not the one that is
// requested, or nil if it is.
func (k karpenter) checkExisting(ctx context.Context, pool *v1alpha1.NodePool, name string) error {
	c, err := k.get(ctx, name)
	switch {
	case err != nil:
		return err // it has just gone, or the request fails; it is repeated
	case c.GetLabels()[wire.LabelNodePool] != pool.Name:
		return fmt.Errorf("NodeClaim %s exists and does not belong to this pool", name)
	case c.GetDeletionTimestamp() != nil:
		return fmt.Errorf("NodeClaim %s is still being deleted", name)
	}
	return nil
}

func (k karpenter) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(nodeClaimKind)
	err := k.client.Get(ctx, client.ObjectKey{Name: name}, c)
	return c, explained(err)
}

func (k karpenter) Suspend(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	return forEach(nodes, func(name string) error {
		c, err := k.get(ctx, name)
		if err == nil && c.GetLabels()[wire.LabelNodePool] == pool.Name {
			uid := c.GetUID()
			err = k.client.Delete(ctx, c, client.Preconditions{UID: &uid})
		}
		return client.IgnoreNotFound(err)
	})
}

func (karpenter) Failed(context.Context, *v1alpha1.NodePool, []string) error { return nil }

func (k karpenter) Progress(
	ctx context.Context, pool *v1alpha1.NodePool, nodes []string,
) (map[string]Progress, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodeClaimKind)
	if err := k.client.List(ctx, list, client.MatchingLabels{wire.LabelNodePool: pool.Name}); err != nil {
		return nil, explained(err)
	}
	claims := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		claims[list.Items[i].GetName()] = &list.Items[i]
	}
	warnings := sync.OnceValues(func() (map[string]string, error) { return k.lastWarnings(ctx) })
	out := map[string]Progress{}
	for _, name := range nodes {
		switch c := claims[name]; {
		case c == nil || c.GetDeletionTimestamp() != nil:
			why, err := warnings()
			if err != nil {
				return nil, err
			}
			out[name] = Progress{Text: "Karpenter deleted its NodeClaim" + why[name], Refused: true}
		default:
			out[name] = Progress{Text: missingCondition(c, "Launched", "Registered", "Initialized")}
		}
	}
	return out, nil
}

// lastWarnings returns what the newest warning about each NodeClaim says, after ": ".
func (k karpenter) lastWarnings(ctx context.Context) (map[string]string, error) {
	list := &corev1.EventList{}
	err := k.client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{
		"involvedObject.kind": nodeClaimKind.Kind, "type": corev1.EventTypeWarning,
	})
	if err != nil {
		return nil, fmt.Errorf("events about NodeClaims: %w", explained(err))
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int {
		return a.LastTimestamp.Compare(b.LastTimestamp.Time)
	})
	out := map[string]string{}
	for i := range list.Items {
		e := &list.Items[i]
		name := e.InvolvedObject.Name
		out[name] = ": " + e.Reason + ": " + strings.TrimPrefix(e.Message, "NodeClaim "+name+" event: ")
	}
	return out, nil
}

// missingCondition returns the first of the steps whose condition is not true, with its reason
// and message; "": there is none, or nothing is known of any.
func missingCondition(c *unstructured.Unstructured, steps ...string) string {
	for _, step := range steps {
		condition := conditionOf(c, step)
		if condition == nil || text(condition, "status") == string(metav1.ConditionTrue) {
			continue
		}
		words := []string{"not " + strings.ToLower(step)}
		for _, w := range []string{text(condition, "reason"), text(condition, "message")} {
			if w != "" && w != words[len(words)-1] && !slices.Contains(notBegun, w) {
				words = append(words, w)
			}
		}
		return strings.Join(words, ": ")
	}
	return ""
}

// conditionOf returns the condition of that type in the status of an object, or nil.
func conditionOf(c *unstructured.Unstructured, kind string) any {
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	i := slices.IndexFunc(conditions, func(x any) bool { return text(x, "type") == kind })
	if i < 0 {
		return nil
	}
	return conditions[i]
}

// notBegun are the reason and the message of a condition before Karpenter has begun.
var notBegun = []string{"AwaitingReconciliation", "object is awaiting reconciliation"}

// text returns the string in a field of a JSON object, or "".
func text(object any, field string) string {
	m, _ := object.(map[string]any)
	s, _ := m[field].(string)
	return s
}

// requirementLabels are labels that the provider sets when it chooses an instance: a promise of
// the pool about them restricts the choice.
var requirementLabels = []string{
	corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelArchStable, corev1.LabelOSStable, karpenterGroup + "/capacity-type",
}

// nodeClaim returns the request for a node of the pool.
func nodeClaim(pool *v1alpha1.NodePool, name string) (*unstructured.Unstructured, error) {
	k := pool.Spec.Karpenter
	labels, annotations := pools.Metadata(pool)
	requirements := slices.Clone(k.Requirements)
	for _, key := range requirementLabels {
		if value, ok := labels[key]; ok {
			delete(labels, key)
			requirements = append(requirements, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
			})
		}
	}
	labels[wire.LabelNodePool] = pool.Name
	annotations[wire.AnnotationNodeName], annotations[annotationDoNotDisrupt] = name, "true"
	spec := nodeClaimSpec{
		NodeClassRef: k.NodeClassRef, Requirements: requirements, Taints: pool.Spec.Taints, ExpireAfter: "Never",
		Resources: corev1.ResourceRequirements{Requests: maps.Clone(pool.Spec.Resources)},
	}
	if spec.Requirements == nil {
		spec.Requirements = []corev1.NodeSelectorRequirement{}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, fmt.Errorf("NodeClaim %s: %w", name, err)
	}
	c := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	c.SetGroupVersionKind(nodeClaimKind)
	c.SetName(name)
	c.SetLabels(labels)
	c.SetAnnotations(annotations)
	return c, nil
}

// nodeClaimSpec has the fields of a NodeClaim that are set.
type nodeClaimSpec struct {
	NodeClassRef v1alpha1.NodeClassRef            `json:"nodeClassRef"`
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	Resources    corev1.ResourceRequirements      `json:"resources"`
	Taints       []corev1.Taint                   `json:"taints,omitempty"`
	ExpireAfter  string                           `json:"expireAfter"`
}

// progressText bounds the length of what the status of a pool says about a node.
const progressText = 300

// shorten returns the text on one line, cut after progressText characters.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > progressText {
		return string(r[:progressText]) + "..."
	}
	return s
}
