package namespaces

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// EgressPolicyName is the name of the NetworkPolicy that limits where pods of a
// namespace may connect to.
const EgressPolicyName = "berth-egress"

// Egress lists the destinations that the pods of users may connect to; every
// other connection is denied by a NetworkPolicy in each namespace. The API
// server's addresses are added to each list, since no selector of a
// NetworkPolicy covers them.
type Egress struct {
	// Users are the rules in the namespaces of users.
	Users []networkingv1.NetworkPolicyEgressRule `json:"users"`
	// Namespaces are the rules in further namespaces, by name. A namespace that
	// does not exist is skipped.
	Namespaces map[string][]networkingv1.NetworkPolicyEgressRule `json:"namespaces"`
}

// ReadEgress reads an Egress from a YAML file. Unknown members are errors.
func ReadEgress(path string) (*Egress, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := &Egress{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// apiServerRules returns the rules that allow connections to the API server: to
// the endpoints of the Service "kubernetes", and to its cluster address for
// networks that compare addresses before the Service is resolved.
func apiServerRules(ctx context.Context, c client.Client) ([]networkingv1.NetworkPolicyEgressRule, error) {
	found := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, found, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		return nil, err
	}
	addresses := map[int32][]string{} // by port
	for _, s := range found.Items {
		for _, p := range s.Ports {
			for _, e := range s.Endpoints {
				if p.Port != nil {
					addresses[*p.Port] = append(addresses[*p.Port], e.Addresses...)
				}
			}
		}
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"},
		service); err != nil {
		return nil, err
	}
	for _, p := range service.Spec.Ports {
		addresses[p.Port] = append(addresses[p.Port], service.Spec.ClusterIPs...)
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the Service %s/kubernetes has no addresses", metav1.NamespaceDefault)
	}
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, port := range slices.Sorted(maps.Keys(addresses)) {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To:    addressPeers(addresses[port]),
			Ports: []networkingv1.NetworkPolicyPort{{Port: &intstr.IntOrString{IntVal: port}}},
		})
	}
	return rules, nil
}

// addressPeers returns a peer for each address, sorted, so that equal sets make
// equal policies.
func addressPeers(addresses []string) []networkingv1.NetworkPolicyPeer {
	slices.Sort(addresses)
	var peers []networkingv1.NetworkPolicyPeer
	for _, a := range slices.Compact(addresses) {
		bits := "/32"
		if slices.Contains([]byte(a), ':') {
			bits = "/128"
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: a + bits}})
	}
	return peers
}

// prepareEgress reads the API server's addresses. It returns true if they have changed,
// so that the policies have to be applied again. Without an Egress it deletes what an
// earlier process applied.
func (c *Controller) prepareEgress(ctx context.Context) (changed bool, err error) {
	if c.settings.Egress == nil {
		return false, c.removeEgress(ctx)
	}
	rules, err := apiServerRules(ctx, c.cluster.Client)
	if err != nil {
		return false, err
	}
	if equality.Semantic.DeepEqual(rules, c.apiServer) {
		return false, nil
	}
	c.apiServer = rules
	return true, nil
}

// limitEgress applies the policy of a user's namespace. While the API server's
// addresses are unknown, nothing changes.
func (c *Controller) limitEgress(ctx context.Context, u *v1alpha1.User) error {
	if c.settings.Egress == nil || c.apiServer == nil {
		return nil
	}
	return c.applyPolicy(ctx, u.Spec.Namespace, c.settings.Egress.Users)
}

// applyPolicy creates or updates the NetworkPolicy of one namespace.
func (c *Controller) applyPolicy(
	ctx context.Context, namespace string, rules []networkingv1.NetworkPolicyEgressRule,
) error {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: EgressPolicyName}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.cluster.Client, p, func() error {
		metav1.SetMetaDataLabel(&p.ObjectMeta, labelPart, "berth")
		p.Spec = networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      withProtocols(slices.Concat(rules, c.apiServer)),
		}
		return nil
	})
	return err
}

// withProtocols fills in the protocol that the API server would fill in, so that
// an unchanged policy compares equal to the stored one.
func withProtocols(rules []networkingv1.NetworkPolicyEgressRule) []networkingv1.NetworkPolicyEgressRule {
	filled := make([]networkingv1.NetworkPolicyEgressRule, len(rules))
	for i := range rules {
		rules[i].DeepCopyInto(&filled[i])
		for j := range filled[i].Ports {
			p := &filled[i].Ports[j]
			p.Protocol = cmp.Or(p.Protocol, new(corev1.ProtocolTCP))
		}
	}
	return filled
}

// limitOtherNamespaces applies the policies of namespaces that belong to no user.
func (c *Controller) limitOtherNamespaces(ctx context.Context) error {
	if c.settings.Egress == nil || c.apiServer == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.settings.Egress.Namespaces)) {
		if _, exists := c.cluster.Namespaces.Get(name); !exists {
			continue
		}
		if err := c.applyPolicy(ctx, name, c.settings.Egress.Namespaces[name]); err != nil {
			return err
		}
	}
	return nil
}

// removeEgress deletes the policies that a process with an Egress has created. A
// process that may not list policies has created none.
func (c *Controller) removeEgress(ctx context.Context) error {
	policies := &networkingv1.NetworkPolicyList{}
	if err := c.cluster.Client.List(ctx, policies, client.MatchingLabels{labelPart: "berth"}); err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return err
	}
	for i := range policies.Items {
		if policies.Items[i].Name != EgressPolicyName {
			continue
		}
		if err := c.cluster.Client.Delete(ctx, &policies.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
