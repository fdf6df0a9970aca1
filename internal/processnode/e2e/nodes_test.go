package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestNodeObject(t *testing.T) {
	n, err := client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gpu := n.Status.Allocatable["gres.berth.hpc/gpu"]
	if n.Status.Capacity.Cpu().Value() != 4 || gpu.Value() != 2 || n.Labels["feature.berth.hpc/fast"] != "true" {
		t.Errorf("node %+v", n)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	}
	if len(n.Spec.Taints) > 0 {
		t.Errorf("taints %+v", n.Spec.Taints)
	}
	eventually.Holds(t, "a lease", func() bool {
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(context.Background(), "n1", metav1.GetOptions{})
		return err == nil
	})
}

func TestPodsReachEachOtherAndTheAPIServer(t *testing.T) {
	server := await(t, create(t, script(`exec python3 -c '
import os, socket
s = socket.create_server((os.environ["IP"], 18766))
print("up", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"served\n")
    c.close()'`, func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
	})), running)
	waitLog(t, server, "up")
	log, pod := finish(t, script(`exec python3 -c '
import os, socket, ssl, urllib.request
print(socket.create_connection((os.environ["SERVER"], 18766)).recv(99).decode(), end="")
d = "/var/run/secrets/kubernetes.io/serviceaccount/"
url = "https://%s:%s/version" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
c = ssl.create_default_context(cafile=d + "ca.crt")
c.check_hostname = False
r = urllib.request.Request(url, headers={"Authorization": "Bearer " + open(d + "token").read()})
print(urllib.request.urlopen(r, context=c).status)'`, func(p *corev1.Pod) {
		p.Spec.NodeName = "n2"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SERVER", Value: server.Status.PodIP}}
	}))
	if log != "served\n200\n" {
		t.Errorf("log %q, end %+v", log, terminated(pod))
	}
}

// TestKilledNode kills the process of a node with pods: the pods' processes are killed with it,
// and the next start reports the pods as terminated and does not run them again.
func TestKilledNode(t *testing.T) {
	name := "killed"
	cmd, err := become("nodes", state, name)
	if err != nil {
		t.Fatal(err)
	}
	marker := fmt.Sprintf("%d.25", 100000+os.Getpid())
	kept := create(t, script(`setsid sleep `+marker+` & exec sleep `+marker, func(p *corev1.Pod) { p.Spec.NodeName = name }))
	deleted := create(t, script(`trap '' TERM; sleep `+marker, func(p *corev1.Pod) { p.Spec.NodeName = name }))
	for _, p := range []*corev1.Pod{kept, deleted} {
		await(t, p, running)
	}
	remove(t, deleted, 1000)
	eventually.Holds(t, "three sleeping processes", func() bool { return len(processes(t, marker)) == 3 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually.Holds(t, "no process left", func() bool { return len(processes(t, marker)) == 0 })

	if cmd, err = become("nodes", state, name); err != nil {
		t.Fatal(err)
	}
	kept = await(t, kept, over)
	if kept.Status.Reason != "Terminated" || kept.Status.Phase != corev1.PodFailed {
		t.Errorf("status %+v", kept.Status)
	}
	gone(t, deleted)
	again := create(t, script(`sleep 1000`, func(p *corev1.Pod) { p.Spec.NodeName = name }))
	await(t, again, running)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	again = await(t, again, over)
	if again.Status.Reason != "Terminated" {
		t.Errorf("status %+v", again.Status)
	}
	if err := client.CoreV1().Pods(namespace).Delete(context.Background(), again.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Error(err)
	}
	if err := client.CoreV1().Pods(namespace).Delete(context.Background(), kept.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Error(err)
	}
}

// processes returns the files /proc/PID/cmdline of the processes that run sleep with arg.
func processes(t *testing.T, arg string) []string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range found {
		data, err := os.ReadFile(f)
		if err == nil && strings.HasPrefix(string(data), "sleep\x00"+arg) {
			ids = append(ids, f)
		}
	}
	return ids
}

// TestNothingLeaks runs pods and compares the resources of the process and the machine before and
// after.
func TestNothingLeaks(t *testing.T) {
	round := func(count int) {
		var pods []*corev1.Pod
		for range count {
			pods = append(pods, create(t, script(`echo hello; sleep 0.05`)))
		}
		for _, p := range pods {
			await(t, p, over)
			remove(t, p, 0)
		}
		for _, p := range pods {
			gone(t, p)
		}
	}
	round(4) // creates threads, connections and caches that are kept
	before := resources(t)
	round(30)
	var after map[string]int
	ok := func() bool {
		after = resources(t)
		for what, n := range after {
			// Idle connections and timers of client-go come and go.
			slack := map[string]int{"goroutines": 8, "files": 6}[what]
			if n > before[what]+slack {
				return false
			}
		}
		return true
	}
	defer func() { t.Logf("before %v, after %v", before, after) }()
	eventually.Holds(t, "no more than before", ok)
}

// resources counts the resources of these nodes, without those of other clusters of the machine,
// such as of tests that run at the same time.
func resources(t *testing.T) map[string]int {
	t.Helper()
	count := func(dir string) int {
		entries, _ := os.ReadDir(dir)
		return len(entries)
	}
	h := map[string]int{
		"goroutines": runtime.NumGoroutine(),
		"files":      count("/proc/self/fd"),
		"pods":       count(filepath.Join(nodes.dir, "pods")),
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	h["mounts"] = strings.Count(string(mounts), nodes.dir)
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	bridge := bridgeOf(links)
	for _, l := range links {
		if strings.HasPrefix(l.Name, bridge) {
			h["links"]++
		}
	}
	sum := sha256.Sum256([]byte(nodes.dir))
	own := "berth-" + hex.EncodeToString(sum[:4]) + "*"
	groups, _ := filepath.Glob("/sys/fs/cgroup/memory/" + own + "/*-*")
	h["groups"] = len(groups)
	shm, _ := filepath.Glob("/dev/shm/" + own + "/*")
	h["shm"] = len(shm)
	return h
}

// bridgeOf returns the name of the bridge of the nodes' pods, which is a prefix of the names of the
// pods' links; without root, that of the loopback.
func bridgeOf(links []net.Interface) string {
	for _, l := range links {
		addresses, _ := l.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.String() == nodes.network.Gateway().String() {
				return l.Name
			}
		}
	}
	return "none"
}

// BenchmarkPod measures the time from the creation of a bound pod to its status Running.
func BenchmarkPod(b *testing.B) {
	if !processnode.IsRoot() {
		b.Log("without root")
	}
	ctx := context.Background()
	for b.Loop() {
		w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		p, err := client.CoreV1().Pods(namespace).Create(ctx, script(`exec sleep 1000`), metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for e := range w.ResultChan() {
			if got, ok := e.Object.(*corev1.Pod); ok && got.Name == p.Name && running(got) {
				break
			}
		}
		b.StopTimer()
		w.Stop()
		if err := client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
