package realnode

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// endpoint is a pod with the address of its node's network.
type endpoint struct {
	pod     *corev1.Pod
	address netip.Addr
}

// cluster is the input of the decision about connections.
type cluster struct {
	policies   []*networkingv1.NetworkPolicy
	namespaces map[string]labels.Set
	endpoints  []endpoint // of all nodes
}

// ruleset returns the input of nft(8) for a node whose kubelet probes pods from
// the address host. Only the first packet of a TCP connection is filtered, so that
// no state has to be kept:
//
//   - on its way out of the bridge to a pod, by the policies of the pod that it
//     comes from and of the pod that it goes to;
//   - on its way from a pod of this node to an address that is no pod's, the
//     node's own addresses included, by the policies of the pod.
//
// In both places the addresses of Services have been resolved. ruleset returns an
// error for a policy that it cannot express.
func (c *cluster) ruleset(node string, host netip.Addr) (string, error) {
	var from, fromHere, to []string // elements of verdict maps: "ADDRESS : jump CHAIN"
	var bridge, routed []string     // chains
	for _, e := range c.endpoints {
		name := strings.ReplaceAll(e.address.String(), ".", "_")
		here := e.pod.Spec.NodeName == node
		rules, isolated, err := c.egressRules(e)
		if err != nil {
			return "", err
		}
		if isolated {
			element := fmt.Sprintf("%s : jump from_%s", e.address, name)
			text := chainText("from_"+name, e.pod, append(rules, "drop"))
			from, bridge = append(from, element), append(bridge, text)
			if here {
				fromHere, routed = append(fromHere, element), append(routed, text)
			}
		}
		if !here {
			continue
		}
		if rules, isolated, err = c.ingressRules(e); err != nil {
			return "", err
		}
		if isolated {
			to = append(to, fmt.Sprintf("%s : jump to_%s", e.address, name))
			rules = append([]string{fmt.Sprintf("ip saddr %s accept", host)}, append(rules, "drop")...)
			bridge = append(bridge, chainText("to_"+name, e.pod, rules))
		}
	}
	deliver := verdicts("saddr", from) + verdicts("daddr", to)
	leave := verdicts("saddr", fromHere)
	// One transaction: the tables that were there are replaced.
	return tableText("bridge", strings.Join(bridge, "")+hookText("deliver", "postrouting", deliver)) +
			tableText("ip", strings.Join(routed, "")+hookText("route", "forward", leave)+
				hookText("local", "input", leave)),
		nil
}

func chainText(name string, pod *corev1.Pod, rules []string) string {
	return fmt.Sprintf("\tchain %s { # %s/%s\n\t\t%s\n\t}\n", name, pod.Namespace, pod.Name,
		strings.Join(rules, "\n\t\t"))
}

func tableText(family, chains string) string {
	return fmt.Sprintf("table %[1]s policies\ndelete table %[1]s policies\ntable %[1]s policies {\n%[2]s}\n", family,
		chains)
}

func hookText(name, hook, rules string) string {
	return fmt.Sprintf("\tchain %s {\n\t\ttype filter hook %s priority filter; policy accept;\n%s\t}\n", name, hook,
		rules)
}

// verdicts returns a rule that sends a connection's first packet to the chain of
// its source ("saddr") or destination ("daddr").
func verdicts(direction string, elements []string) string {
	if len(elements) == 0 {
		return ""
	}
	return fmt.Sprintf("\t\ttcp flags & (syn | ack) == syn ip %s vmap { %s }\n", direction,
		strings.Join(elements, ", "))
}

// ingressRules returns the rules that accept connections to an endpoint, and
// whether any policy restricts them.
func (c *cluster) ingressRules(e endpoint) (rules []string, isolated bool, err error) {
	return c.rules(e, networkingv1.PolicyTypeIngress, func(p *networkingv1.NetworkPolicy) (rules []string, err error) {
		for _, r := range p.Spec.Ingress {
			more, err := c.ingress(p.Namespace, r, e.pod)
			if err != nil {
				return nil, err
			}
			rules = append(rules, more...)
		}
		return rules, nil
	})
}

// egressRules returns the rules that let connections of an endpoint pass, and
// whether any policy restricts them.
func (c *cluster) egressRules(e endpoint) (rules []string, isolated bool, err error) {
	return c.rules(e, networkingv1.PolicyTypeEgress, func(p *networkingv1.NetworkPolicy) (rules []string, err error) {
		for _, r := range p.Spec.Egress {
			more, err := c.egress(p.Namespace, r)
			if err != nil {
				return nil, err
			}
			rules = append(rules, more...)
		}
		return rules, nil
	})
}

// rules adds up the rules of each policy that selects an endpoint for a direction.
func (c *cluster) rules(
	e endpoint, direction networkingv1.PolicyType, of func(*networkingv1.NetworkPolicy) ([]string, error),
) (rules []string, isolated bool, err error) {
	for _, p := range c.policies {
		if p.Namespace != e.pod.Namespace || !restricts(p, direction) {
			continue
		}
		selected, err := matches(&p.Spec.PodSelector, e.pod.Labels)
		if err != nil {
			return nil, false, err
		}
		if !selected {
			continue
		}
		isolated = true
		more, err := of(p)
		if err != nil {
			return nil, false, fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err)
		}
		rules = append(rules, more...)
	}
	return rules, isolated, nil
}

// restricts reports whether a policy is about a direction: without policyTypes it
// is about ingress, and about egress if it has rules for it.
func restricts(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
	}
	return slices.Contains(p.Spec.PolicyTypes, direction)
}

// egress returns a rule for each destination at each port. Only TCP is enforced,
// so ports of other protocols need no rule.
func (c *cluster) egress(namespace string, r networkingv1.NetworkPolicyEgressRule) ([]string, error) {
	ports := slices.DeleteFunc(slices.Clone(r.Ports), func(p networkingv1.NetworkPolicyPort) bool {
		return p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP
	})
	if len(r.Ports) > 0 && len(ports) == 0 {
		return nil, nil
	}
	for _, p := range ports {
		if p.Port != nil && p.Port.Type == intstr.String {
			return nil, errors.New("named ports of egress rules are not enforced here")
		}
	}
	return c.combine(namespace, "daddr", r.To, ports, nil, "return")
}

// ingress returns a rule for each source at each port.
func (c *cluster) ingress(namespace string, r networkingv1.NetworkPolicyIngressRule, to *corev1.Pod) ([]string, error) {
	return c.combine(namespace, "saddr", r.From, r.Ports, to, "accept")
}

// combine returns a rule with the verdict for each peer at each port. named is the
// pod whose named ports count.
func (c *cluster) combine(
	namespace, direction string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort,
	named *corev1.Pod, verdict string,
) ([]string, error) {
	addresses := []string{""}
	if len(peers) > 0 {
		addresses = nil
	}
	for _, peer := range peers {
		match, err := c.addressMatch(namespace, direction, peer)
		if err != nil {
			return nil, err
		}
		if match != "" {
			addresses = append(addresses, match)
		}
	}
	matches, err := portMatches(ports, named)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, a := range addresses {
		for _, p := range matches {
			rules = append(rules, a+p+verdict)
		}
	}
	return rules, nil
}

// addressMatch returns the expression that matches the addresses of a peer, as
// source or destination; empty: the peer has none.
func (c *cluster) addressMatch(namespace, direction string, peer networkingv1.NetworkPolicyPeer) (string, error) {
	if b := peer.IPBlock; b != nil {
		match := "ip " + direction + " " + b.CIDR + " "
		if len(b.Except) > 0 {
			match += "ip " + direction + " != { " + strings.Join(b.Except, ", ") + " } "
		}
		return match, nil
	}
	var addresses []string
	for _, e := range c.endpoints {
		is, err := c.is(namespace, peer, e.pod)
		if err != nil {
			return "", err
		}
		if is {
			addresses = append(addresses, e.address.String())
		}
	}
	if len(addresses) == 0 {
		return "", nil
	}
	return "ip " + direction + " { " + strings.Join(addresses, ", ") + " } ", nil
}

// is reports whether a pod is the peer that a policy of namespace names.
func (c *cluster) is(namespace string, peer networkingv1.NetworkPolicyPeer, pod *corev1.Pod) (bool, error) {
	if peer.NamespaceSelector == nil {
		if pod.Namespace != namespace {
			return false, nil
		}
	} else if in, err := matches(peer.NamespaceSelector, c.namespaces[pod.Namespace]); err != nil || !in {
		return false, err
	}
	if peer.PodSelector == nil {
		return true, nil
	}
	return matches(peer.PodSelector, pod.Labels)
}

func matches(selector *metav1.LabelSelector, set labels.Set) (bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set), err
}

// portMatches returns the match for packets to the ports; a name that the pod's
// containers do not use for a port matches none.
func portMatches(ports []networkingv1.NetworkPolicyPort, to *corev1.Pod) ([]string, error) {
	if len(ports) == 0 {
		return []string{""}, nil
	}
	var found []string
	for _, p := range ports {
		switch {
		case p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP:
			return nil, errors.New("only TCP is enforced here")
		case p.Port == nil:
			found = append(found, "")
		case p.Port.Type == intstr.Int && p.EndPort != nil:
			found = append(found, fmt.Sprintf("tcp dport %d-%d ", p.Port.IntVal, *p.EndPort))
		case p.Port.Type == intstr.Int:
			found = append(found, fmt.Sprintf("tcp dport %d ", p.Port.IntVal))
		default:
			for _, number := range namedPorts(to, p.Port.StrVal) {
				found = append(found, fmt.Sprintf("tcp dport %d ", number))
			}
		}
	}
	return found, nil
}

func namedPorts(pod *corev1.Pod, name string) []int32 {
	var found []int32
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") {
				found = append(found, p.ContainerPort)
			}
		}
	}
	return found
}
