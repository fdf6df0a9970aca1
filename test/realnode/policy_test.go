package realnode

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// testCluster returns a cluster with a server on n1 that has two named ports, and other pods: friend
// in the server's namespace, job of a user on the other node, and stranger in a third namespace.
func testCluster(t *testing.T, policies ...string) *cluster {
	t.Helper()
	c := &cluster{namespaces: map[string]labels.Set{"system": {}, "user-a": {"user": "a"}, "else": {}}}
	add := func(namespace, name, node, address string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName, p.Labels = namespace, name, node, map[string]string{"app": name}
		c.endpoints = append(c.endpoints, endpoint{pod: p, address: netip.MustParseAddr(address)})
		return p
	}
	add("system", "server", "n1", "10.0.1.2").Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{
		{Name: "api", ContainerPort: 6820}, {Name: "hook", ContainerPort: 6822}}}}
	add("system", "friend", "n1", "10.0.1.3")
	add("user-a", "job", "n2", "10.0.2.2")
	add("else", "stranger", "n2", "10.0.2.3")
	for _, text := range policies {
		p := &networkingv1.NetworkPolicy{}
		must(t, yaml.Unmarshal([]byte(text), p))
		c.policies = append(c.policies, p)
	}
	return c
}

const policyHead = "metadata: {namespace: system, name: p}\nspec:\n  podSelector: {matchLabels: {app: server}}\n"

// TestRules checks the rules that allow connections to the server.
func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		want   []string
	}{
		"no peers":             {"", nil},
		"all peers":            {"  ingress: [{}]", []string{"accept"}},
		"a port by name":       {"  ingress: [{ports: [{port: api}]}]", []string{"tcp dport 6820 accept"}},
		"a name of no port":    {"  ingress: [{ports: [{port: none}]}]", nil},
		"numbers":              {"  ingress: [{ports: [{port: 80}, {port: 100, endPort: 200}]}]", []string{"tcp dport 80 accept", "tcp dport 100-200 accept"}},
		"all of TCP":           {"  ingress: [{ports: [{protocol: TCP}]}]", []string{"accept"}},
		"pods beside it":       {"  ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]", []string{"ip saddr { 10.0.1.3 } accept"}},
		"not pods elsewhere":   {"  ingress: [{from: [{podSelector: {matchLabels: {app: job}}}]}]", nil},
		"pods of namespaces":   {"  ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: user, operator: Exists}]}}], ports: [{port: api}, {port: hook}]}]", []string{"ip saddr { 10.0.2.2 } tcp dport 6820 accept", "ip saddr { 10.0.2.2 } tcp dport 6822 accept"}},
		"some of those pods":   {"  ingress: [{from: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: app, operator: In, values: [friend, stranger]}]}}]}]", []string{"ip saddr { 10.0.1.3, 10.0.2.3 } accept"}},
		"addresses":            {"  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.2.0/24, 10.3.0.0/16]}}]}]", []string{"ip saddr 10.0.0.0/8 ip saddr != { 10.0.2.0/24, 10.3.0.0/16 } accept"}},
		"one rule and another": {"  ingress: [{ports: [{port: 1}]}, {from: [{ipBlock: {cidr: 10.9.0.0/16}}]}]", []string{"tcp dport 1 accept", "ip saddr 10.9.0.0/16 accept"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := testCluster(t, policyHead+c.policy)
			rules, isolated, err := k.ingressRules(k.endpoints[0])
			if err != nil || !isolated || strings.Join(rules, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("isolated %v, error %v, rules\n%s\nwant\n%s", isolated, err, strings.Join(rules, "\n"), strings.Join(c.want, "\n"))
			}
			if _, isolated, err := k.ingressRules(k.endpoints[1]); isolated || err != nil {
				t.Errorf("the pod beside it is isolated: %v, %v", isolated, err)
			}
		})
	}
}

// TestEgressRules checks the rules that permit connections of the server.
func TestEgressRules(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		want   []string
	}{
		"nowhere":            {"  policyTypes: [Egress]", nil},
		"everywhere":         {"  egress: [{}]", []string{"return"}},
		"own namespace":      {"  egress: [{to: [{podSelector: {}}]}]", []string{"ip daddr { 10.0.1.2, 10.0.1.3 } return"}},
		"a port":             {"  egress: [{ports: [{port: 443}]}]", []string{"tcp dport 443 return"}},
		"DNS by UDP and TCP": {"  egress: [{ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}]", []string{"tcp dport 53 return"}},
		"UDP alone":          {"  egress: [{ports: [{port: 53, protocol: UDP}]}]", nil},
		"some of the world":  {"  egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16]}}]}]", []string{"ip daddr 0.0.0.0/0 ip daddr != { 169.254.0.0/16 } return"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := testCluster(t, policyHead+c.policy)
			rules, isolated, err := k.egressRules(k.endpoints[0])
			if err != nil || !isolated || strings.Join(rules, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("isolated %v, error %v, rules\n%s\nwant\n%s", isolated, err, strings.Join(rules, "\n"), strings.Join(c.want, "\n"))
			}
			if _, isolated, err := k.egressRules(k.endpoints[1]); isolated || err != nil {
				t.Errorf("the pod beside it is isolated: %v, %v", isolated, err)
			}
		})
	}
	only := testCluster(t, policyHead+"  policyTypes: [Egress]")
	if _, isolated, err := only.ingressRules(only.endpoints[0]); isolated || err != nil {
		t.Errorf("a policy about egress restricts ingress: %v, %v", isolated, err)
	}
}

// TestRuleset: several policies add up, and a node's rules are about its own
// pods.
func TestRuleset(t *testing.T) {
	k := testCluster(t, policyHead+"  ingress: [{ports: [{port: api}]}]",
		strings.Replace(policyHead, "name: p", "name: q", 1)+"  ingress: [{from: [{podSelector: {}}]}]",
		"metadata: {namespace: system, name: r}\nspec: {podSelector: {matchLabels: {app: friend}}}")
	const none = `table ip policies
delete table ip policies
table ip policies {
	chain route {
		type filter hook forward priority filter; policy accept;
	}
	chain local {
		type filter hook input priority filter; policy accept;
	}
}
`
	for node, want := range map[string]string{
		"n1": `	chain to_10_0_1_2 { # system/server
		ip saddr 10.0.1.1 accept
		tcp dport 6820 accept
		ip saddr { 10.0.1.2, 10.0.1.3 } accept
		drop
	}
	chain to_10_0_1_3 { # system/friend
		ip saddr 10.0.1.1 accept
		drop
	}
	chain deliver {
		type filter hook postrouting priority filter; policy accept;
		tcp flags & (syn | ack) == syn ip daddr vmap { 10.0.1.2 : jump to_10_0_1_2, 10.0.1.3 : jump to_10_0_1_3 }
	}
}
`,
		"n2": `	chain deliver {
		type filter hook postrouting priority filter; policy accept;
	}
}
`,
	} {
		want = "table bridge policies\ndelete table bridge policies\ntable bridge policies {\n" + want + none
		if got, err := k.ruleset(node, netip.MustParseAddr("10.0.1.1")); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", node, err, got, want)
		}
	}
}

// TestEgressRuleset: a pod's connections to other pods are filtered where they
// arrive, those to anything else where the pod runs.
func TestEgressRuleset(t *testing.T) {
	k := testCluster(t, "metadata: {namespace: user-a, name: e}\nspec: {podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}, {ports: [{port: 443}]}]}")
	const chain = `	chain from_10_0_2_2 { # user-a/job
		ip daddr { 10.0.2.2 } return
		tcp dport 443 return
		drop
	}
`
	const jump = "\t\ttcp flags & (syn | ack) == syn ip saddr vmap { 10.0.2.2 : jump from_10_0_2_2 }\n"
	for node, here := range map[string]bool{"n1": false, "n2": true} {
		routed, leave := "", ""
		if here {
			routed, leave = chain, jump
		}
		want := tableText("bridge", chain+hookText("deliver", "postrouting", jump)) +
			tableText("ip", routed+hookText("route", "forward", leave)+hookText("local", "input", leave))
		if got, err := k.ruleset(node, netip.MustParseAddr("10.0.1.1")); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", node, err, got, want)
		}
	}
}

// TestRulesetReportsUnsupportedRules checks that unsupported rules are errors, because ignoring
// them would permit connections.
func TestRulesetReportsUnsupportedRules(t *testing.T) {
	for policy, want := range map[string]string{
		"  egress: [{ports: [{port: api}]}]":                             "system/p: named ports",
		"  ingress: [{ports: [{protocol: UDP, port: 53}]}]":              "system/p: only TCP",
		"  ingress: [{from: [{podSelector: {matchExpressions: [{}]}}]}]": "system/p: ",
	} {
		if got, err := testCluster(t, policyHead+policy).ruleset("n1", netip.MustParseAddr("10.0.1.1")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", policy, err, got)
		}
	}
}

// TestReadNote parses the files of libcni, and skips incomplete ones.
func TestReadNote(t *testing.T) {
	const whole = `{"kind":"cniCacheV1","containerId":"c","cniArgs":[["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","user-a"],["K8S_POD_NAME","job"],["K8S_POD_UID","u1"]],
		"result":{"cniVersion":"1.0.0","ips":[{"address":"172.29.101.5/24","gateway":"172.29.101.1","interface":2}]}}`
	file := filepath.Join(t.TempDir(), "site-c-eth0")
	must(t, os.WriteFile(file, []byte(whole[:150]), 0o600))
	if n, ok := readNote(file); ok {
		t.Errorf("an incomplete file is parsed as %+v", n)
	}
	must(t, os.WriteFile(file, []byte(whole), 0o600))
	want := note{namespace: "user-a", name: "job", uid: "u1", address: netip.MustParseAddr("172.29.101.5")}
	if n, ok := readNote(file); !ok || n != want {
		t.Errorf("%+v, %v", n, ok)
	}
	if _, ok := readNote(file + "s"); ok {
		t.Error("a missing file is parsed")
	}
}
