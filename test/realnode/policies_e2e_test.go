//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/berth-hpc/berth/internal/wire"
)

// tryConnections tries connections, each "ADDRESS PORT EXPECTED", and prints the results: open;
// refused, which is a response of the host, so the packet arrived; shut if there was no
// response. It waits longer if a response is expected.
const tryConnections = `
try() {
	limit=3; [ $3 = shut ] || limit=40
	timeout $limit bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null
	case $? in 0) echo $1 $2 open;; 124) echo $1 $2 shut;; *) echo $1 $2 refused;; esac
}
while read line; do try $line & done <<END
%s
END
wait
`

// testPolicies tries connections from pods of a user, of another namespace and of a
// monitoring system to the ports of scheduler and login node, and to a job's, with the
// chart's policies and the example for users' namespaces, and without them. A user's
// job and a session of the login node also connect to the kubelets, the API server and
// DNS.
func testPolicies(t *testing.T, ctx context.Context, s *Site) {
	if err := s.enforcer.err(); err != nil {
		t.Fatal(err)
	}
	scheduler := podAddress(t, ctx, s, wire.SystemNamespace, wire.LabelLeader+"=true")
	login := podAddress(t, ctx, s, "berth-login", "app.kubernetes.io/component=login")
	targetJob, target := startTarget(t, ctx, s)
	connections := func(api, health, jobset, ssh, metrics, other, job string) []string {
		var all []string
		for i, what := range []string{api, health, jobset} {
			all = append(all, fmt.Sprintf("%s %d %s", scheduler, 6820+i, what))
		}
		return append(all, login+" 2222 "+ssh, login+" 9122 "+metrics, login+" 5001 "+other, target+" 5001 "+job)
	}
	const open, shut, refused = "open", "shut", "refused"
	outside := func(kubelet string) []string {
		return []string{
			s.nodes[0].spec.address() + " 10250 " + kubelet, s.nodes[1].spec.address() + " 10250 " + kubelet,
			"10.255.0.1 443 " + open, dnsAddress + " 53 " + open,
		}
	}
	checkSession(t, ctx, s, outside(shut))
	checkConnections(t, ctx, s, "with", append(connections(open, shut, shut, shut, shut, shut, refused), outside(shut)...), map[string][]string{
		"unrelated": connections(shut, shut, shut, open, shut, shut, shut),
		watchers:    connections(shut, open, shut, open, open, shut, shut),
	})
	policies := removePolicies(t, ctx, s)
	all := connections(open, open, open, open, open, refused, refused)
	checkSession(t, ctx, s, outside(open))
	checkConnections(t, ctx, s, "without", append(slices.Clone(all), outside(open)...), map[string][]string{"unrelated": all, watchers: all})
	writeHome(t, "leave", "")
	waitForState(t, ctx, s, targetJob, "COMPLETED")
	for _, p := range policies {
		p.ResourceVersion, p.UID = "", ""
		if _, err := s.Client.NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, &p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.enforcer.err(); err != nil {
		t.Fatal(err)
	}
}

// startTarget starts a job that runs until the file leave exists, and returns its id and its
// pod's address.
func startTarget(t *testing.T, ctx context.Context, s *Site) (id, address string) {
	t.Helper()
	id = submit(t, ctx, s, "-w", nodeNames[1], "-N1", "-o", "target.out", "--wrap", "hostname -I; until [ -e leave ]; do sleep 0.1; done")
	if err := waitFor(ctx, time.Minute, func() bool {
		b, _ := os.ReadFile(filepath.Join(user.Home(), "target.out"))
		var whole bool
		address, whole = strings.CutSuffix(string(b), "\n")
		return whole
	}); err != nil {
		t.Fatal(err)
	}
	return id, strings.TrimSpace(address)
}

// addOwnPodsOnly applies the example of a policy to the user's jobs in all tests.
func addOwnPodsOnly(t *testing.T, ctx context.Context, s *Site) {
	t.Helper()
	b, err := os.ReadFile("../../examples/own-pods-only.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := &networkingv1.NetworkPolicy{}
	if err := yaml.Unmarshal(b, p); err != nil {
		t.Fatal(err)
	}
	p.Namespace = namespace
	if _, err := s.Client.NetworkingV1().NetworkPolicies(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// removePolicies deletes all policies and returns them.
func removePolicies(t *testing.T, ctx context.Context, s *Site) []networkingv1.NetworkPolicy {
	t.Helper()
	all, err := s.Client.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all.Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	for _, want := range []string{
		wire.SystemNamespace + "/berth-scheduler", "berth-login/berth-login", namespace + "/own-pods-only",
		namespace + "/berth-egress", "berth-login/berth-egress", loginPods + "/berth-egress",
	} {
		if !slices.Contains(names, want) {
			t.Fatalf("there is no NetworkPolicy %s; there are %v", want, names)
		}
	}
	for _, p := range all.Items {
		if err := s.Client.NetworkingV1().NetworkPolicies(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return all.Items
}

func podAddress(t *testing.T, ctx context.Context, s *Site, namespace, selector string) string {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods are %s, %v", len(pods.Items), selector, err)
	}
	return pods.Items[0].Status.PodIP
}

// checkConnections tries the connections from a user's job, on the node of both servers, and from
// pods on another node, in namespaces that do not belong to users.
func checkConnections(t *testing.T, ctx context.Context, s *Site, policies string, job []string, pods map[string][]string) {
	t.Helper()
	name := "connections-" + policies
	for namespace, want := range pods {
		startPod(t, ctx, s, namespace, name, fmt.Sprintf(tryConnections, strings.Join(want, "\n")))
	}
	out := runJob(t, ctx, s, "connections", "-w", nodeNames[0], "-N1", "-J", "connections", "-o", "connections-%j.out", "--wrap", fmt.Sprintf(tryConnections, strings.Join(job, "\n")))
	compare(t, policies+" policies, a user's job", out, job)
	for namespace, want := range pods {
		compare(t, policies+" policies, "+namespace, podOutput(t, ctx, s, namespace, name), want)
	}
}

// checkSession tries the connections from a session of the login node.
func checkSession(t *testing.T, ctx context.Context, s *Site, want []string) {
	t.Helper()
	client := dialLogin(t, ctx, s, user.Name)
	defer client.Close()
	compare(t, "a session of the login node", remote(t, client, fmt.Sprintf(tryConnections, strings.Join(want, "\n"))), want)
}

func compare(t *testing.T, who, out string, want []string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s found\n%s\nwant\n%s", who, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// startPod runs a script in a pod that does not belong to Berth; its output becomes the
// termination message.
func startPod(t *testing.T, ctx context.Context, s *Site, namespace, name, script string) {
	t.Helper()
	create := metav1.CreateOptions{}
	if _, err := s.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, create); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "policies"}}
	if _, err := s.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, create); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: nodeNames[1], RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: account.Name, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "try", Image: SystemImage, Command: []string{"bash", "-c", "exec > /dev/termination-log\n" + script}}},
	}}
	if _, err := s.Client.CoreV1().Pods(namespace).Create(ctx, pod, create); err != nil {
		t.Fatal(err)
	}
}

func podOutput(t *testing.T, ctx context.Context, s *Site, namespace, name string) string {
	t.Helper()
	output := ""
	err := waitFor(ctx, time.Minute, func() bool {
		pod, err := s.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			return false
		}
		output = pod.Status.ContainerStatuses[0].State.Terminated.Message
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return output
}
