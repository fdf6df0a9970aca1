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

// endpoint is a pod with the address that its node's network gave it.
type endpoint struct {
	pod     *corev1.Pod
	address netip.Addr
}

// cluster is what decides who may connect with whom.
type cluster struct {
	policies   []*networkingv1.NetworkPolicy
	namespaces map[string]labels.Set
	endpoints  []endpoint // of all nodes
}

// ruleset returns what nft(8) is to read on a node whose kubelet probes pods
// from the address host: only the first packet of a TCP connection is looked
// at, on its way out of the bridge, so that nothing has to be remembered. It
// returns an error for what a policy may say and this cannot do.
func (c *cluster) ruleset(node string, host netip.Addr) (string, error) {
	var pods, chains []string
	for _, e := range c.endpoints {
		if e.pod.Spec.NodeName != node {
			continue
		}
		rules, isolated, err := c.rules(e)
		if err != nil {
			return "", err
		}
		if !isolated {
			continue
		}
		name := "to_" + strings.ReplaceAll(e.address.String(), ".", "_")
		pods = append(pods, fmt.Sprintf("%s : jump %s", e.address, name))
		rules = append([]string{fmt.Sprintf("ip saddr %s accept", host)}, append(rules, "drop")...)
		chains = append(chains, fmt.Sprintf("\tchain %s { # %s/%s\n\t\t%s\n\t}\n", name, e.pod.Namespace, e.pod.Name, strings.Join(rules, "\n\t\t")))
	}
	var b strings.Builder
	// One transaction: what was there is replaced.
	b.WriteString("table bridge policies\ndelete table bridge policies\ntable bridge policies {\n")
	b.WriteString(strings.Join(chains, ""))
	b.WriteString("\tchain deliver {\n\t\ttype filter hook postrouting priority filter; policy accept;\n")
	if len(pods) > 0 {
		fmt.Fprintf(&b, "\t\ttcp flags & (syn | ack) == syn ip daddr vmap { %s }\n", strings.Join(pods, ", "))
	}
	b.WriteString("\t}\n}\n")
	return b.String(), nil
}

// rules returns those that let somebody in to an endpoint, and whether some
// policy speaks of it at all.
func (c *cluster) rules(e endpoint) (rules []string, isolated bool, err error) {
	for _, p := range c.policies {
		if p.Namespace != e.pod.Namespace {
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
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(p.Spec.Egress) > 0 {
			return nil, false, fmt.Errorf("NetworkPolicy %s/%s: egress is not enforced here", p.Namespace, p.Name)
		}
		for _, r := range p.Spec.Ingress {
			more, err := c.ingress(p.Namespace, r, e.pod)
			if err != nil {
				return nil, false, fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err)
			}
			rules = append(rules, more...)
		}
	}
	return rules, isolated, nil
}

// ingress returns a rule for each source at each port.
func (c *cluster) ingress(namespace string, r networkingv1.NetworkPolicyIngressRule, to *corev1.Pod) ([]string, error) {
	sources := []string{""}
	if len(r.From) > 0 {
		sources = nil
	}
	for _, peer := range r.From {
		source, err := c.source(namespace, peer)
		if err != nil {
			return nil, err
		}
		if source != "" {
			sources = append(sources, source)
		}
	}
	ports, err := portMatches(r.Ports, to)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, s := range sources {
		for _, p := range ports {
			rules = append(rules, s+p+"accept")
		}
	}
	return rules, nil
}

// source is how a packet of a peer is told; empty: there is no such peer.
func (c *cluster) source(namespace string, peer networkingv1.NetworkPolicyPeer) (string, error) {
	if b := peer.IPBlock; b != nil {
		match := "ip saddr " + b.CIDR + " "
		if len(b.Except) > 0 {
			match += "ip saddr != { " + strings.Join(b.Except, ", ") + " } "
		}
		return match, nil
	}
	var from []string
	for _, e := range c.endpoints {
		is, err := c.is(namespace, peer, e.pod)
		if err != nil {
			return "", err
		}
		if is {
			from = append(from, e.address.String())
		}
	}
	if len(from) == 0 {
		return "", nil
	}
	return "ip saddr { " + strings.Join(from, ", ") + " } ", nil
}

// is tells whether a pod is the peer that a policy of namespace names.
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

// portMatches is how packets to the ports are told; a name that the pod's
// containers do not give to a port is no port.
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
