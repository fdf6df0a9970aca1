//go:build e2ereal

package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/internal/wire"
)

// coresVariable makes TestCores run; its value is the number of rounds of the measurement, 0
// for none.
const coresVariable = "BERTH_E2E_CORES"

// TestCores runs jobs on a kubelet that gives cores to pods for themselves (n1), on one that
// also refuses pods with a part of a core (n2), and on one without a CPU manager (n3).
func TestCores(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv(coresVariable))
	if err != nil {
		t.Skip("without " + coresVariable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 18*time.Minute)
	defer cancel()
	s := openSiteOn(t, ctx, map[string]Hardware{
		"n1": {Kubelet: StaticCPUs(nil)},
		"n2": {Kubelet: StaticCPUs(map[string]string{"full-pcpus-only": "true"}), OneCore: true},
	})
	annotate(t, ctx, s, "n1", wire.AnnotationCPUManager, "static")
	annotate(t, ctx, s, "n2", wire.AnnotationState, "drain")
	annotate(t, ctx, s, "n3", wire.AnnotationCPUManager, "none")
	install(t, ctx, s)
	t.Run("exclusive cores", func(t *testing.T) { testExclusiveCores(t, ctx, s) })
	t.Run("pinned cores", func(t *testing.T) { testPinnedCores(t, ctx, s) })
	t.Run("refused", func(t *testing.T) { testMisaligned(t, ctx, s) })
	if rounds > 0 {
		t.Run("noisy neighbour", func(t *testing.T) { benchCores(t, ctx, s, rounds) })
	}
}

func annotate(t *testing.T, ctx context.Context, s *Site, node, key, value string) {
	t.Helper()
	patch, err := json.Marshal(object{"metadata": object{"annotations": object{key: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// showCPUs is a script that prints the CPUs of the batch script and of a task, and the job's.
const showCPUs = `awk '/^Cpus_allowed_list/ {print "script", $2}' /proc/self/status
srun -n1 awk '/^Cpus_allowed_list/ {print "task", $2}' /proc/self/status
scontrol show job -d $SLURM_JOB_ID | grep -o "CPU_IDs=[^ ]*"`

// testExclusiveCores runs a job beside a pod that may use all CPUs that no pod has for itself.
func testExclusiveCores(t *testing.T, ctx context.Context, s *Site) {
	neighbour(t, ctx, s, "n1", "beside", "sleep 3600")
	id := submit(t, ctx, s, "-w", "n1", "-n1", "--mem=64", "-o", "exclusive.out", "--wrap",
		showCPUs+"\necho end; until [ -e exclusive.go ]; do sleep 0.2; done")
	waitFor(ctx, 2*time.Minute, func() bool { //nolint:errcheck // the output is checked
		b, _ := os.ReadFile(filepath.Join(user.Home(), "exclusive.out"))
		return strings.HasSuffix(string(b), "end\n")
	})
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/var/lib/kubelet/cpu_manager_state", s.nodes[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the kubelet's CPU manager: %s", state)
	out := output(t, "exclusive.out")
	if want := "script 1\ntask 1\nCPU_IDs=1\nend\n"; out != want {
		t.Errorf("the job wrote %q, want %q", out, want)
	}
	var known struct {
		DefaultCPUSet string `json:"defaultCpuSet"`
	}
	if err := json.Unmarshal(state, &known); err != nil || known.DefaultCPUSet != "0" {
		t.Errorf("pods without CPUs of their own have %q, want the other CPU (%v)", known.DefaultCPUSet, err)
	}
	// A kubelet takes CPUs away from the pods that run already every ten seconds.
	if err := waitFor(ctx, time.Minute, func() bool { return cpusetOf(t, s.nodes[0], "sleep") == "0" }); err != nil {
		t.Errorf("the pod beside the job may use CPUs %s, want 0: %v", cpusetOf(t, s.nodes[0], "sleep"), err)
	}
	if err := os.WriteFile(filepath.Join(user.Home(), "exclusive.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	waitForState(t, ctx, s, id, "COMPLETED")
	expectExtra(t, ctx, s, "n1", "exclusive cores (static CPU manager)")
	remove(t, ctx, s, "beside")
}

// testPinnedCores runs two jobs on a node without a CPU manager.
func testPinnedCores(t *testing.T, ctx context.Context, s *Site) {
	var ids []string
	for _, name := range []string{"a", "b"} {
		ids = append(ids, submit(t, ctx, s, "-w", "n3", "-n1", "--mem=64", "-o", "pinned-"+name+".out", "--wrap",
			showCPUs+"\necho end; touch pinned-"+name+"; until [ -e pinned-a ] && [ -e pinned-b ]; do sleep 0.2; done"))
	}
	var outs []string
	for i, id := range ids {
		waitForState(t, ctx, s, id, "COMPLETED")
		outs = append(outs, output(t, "pinned-"+string(rune('a'+i))+".out"))
	}
	slices.Sort(outs)
	for i, out := range outs {
		if want := fmt.Sprintf("script %d\ntask %d\nCPU_IDs=%d\nend\n", i, i, i); out != want {
			t.Errorf("a job wrote %q, want %q", out, want)
		}
	}
	expectExtra(t, ctx, s, "n3", "pinned cores (no CPU manager; other pods may use them)")
}

// testMisaligned submits a job that the kubelet of the preferred node refuses, because it would
// have a part of a core. The job runs elsewhere, and the node runs other jobs.
func testMisaligned(t *testing.T, ctx context.Context, s *Site) {
	annotate(t, ctx, s, "n1", wire.AnnotationWeight, "9")
	annotate(t, ctx, s, "n3", wire.AnnotationWeight, "9")
	resume(t, ctx, s, "n2")
	id := submit(t, ctx, s, "-n1", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	waitForState(t, ctx, s, id, "COMPLETED")
	shown, err := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
	if err != nil || !regexp.MustCompile(` NodeList=n[13]\n`).MatchString(shown) {
		t.Errorf("scontrol show job: %v:\n%s", err, shown)
	}
	events, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == "SMTAlignmentError" {
			refused += int(max(1, e.Count))
			t.Logf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	if refused != 1 {
		t.Errorf("the kubelet refused %d pods, want 1", refused)
	}
	// A job without a memory limit gets no CPUs of its own, which no kubelet refuses.
	id = submit(t, ctx, s, "-n1", "-o", "/dev/null", "--wrap", "true")
	waitForState(t, ctx, s, id, "COMPLETED")
	shown, err = s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
	if err != nil || !strings.Contains(shown, " NodeList=n2\n") {
		t.Errorf("scontrol show job: %v:\n%s", err, shown)
	}
}

func expectExtra(t *testing.T, ctx context.Context, s *Site, node, want string) {
	t.Helper()
	out, err := s.As(ctx, user, user.Home(), "scontrol", "show", "node", node)
	if err != nil || !strings.Contains(out, "Extra="+want) {
		t.Errorf("scontrol show node does not say %q (%v):\n%s", want, err, out)
	}
}

// neighbour starts a pod of somebody else on the node, which may use all CPUs that it gets.
func neighbour(t *testing.T, ctx context.Context, s *Site, node, name, command string) {
	t.Helper()
	home := user.Home()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{
		NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
		Volumes: []corev1.Volume{{Name: "home", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: home}}}},
		Containers: []corev1.Container{{
			Name: "main", Image: SystemImage, Command: []string{"sh", "-c", "exec " + command}, WorkingDir: home,
			VolumeMounts: []corev1.VolumeMount{{Name: "home", MountPath: home}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("50m"),
			}},
		}},
	}}
	if _, err := s.Client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(ctx, time.Minute, func() bool {
		p, err := s.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	}); err != nil {
		t.Fatalf("pod %s does not run: %v", name, err)
	}
}

func remove(t *testing.T, ctx context.Context, s *Site, name string) {
	t.Helper()
	if err := s.Client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(ctx, time.Minute, func() bool {
		_, err := s.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err != nil
	}); err != nil {
		t.Fatal(err)
	}
}

// cpusetOf returns the CPUs on which the kernel lets the node's process of that name run.
func cpusetOf(t *testing.T, n *node, name string) string {
	t.Helper()
	for _, pid := range n.processes() {
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || strings.TrimSpace(string(comm)) != name {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if m := regexp.MustCompile(`(?m)^Cpus_allowed_list:\s*(.*)$`).FindSubmatch(status); m != nil {
			return string(m[1])
		}
	}
	t.Fatalf("node %s has no process %s", n.spec.Name, name)
	return ""
}

// kernelSeconds is how long a kernel runs each time.
const kernelSeconds = "3"

// benchCores measures a memory-bound and a cache-bound kernel in jobs on the node with
// exclusive cores and on the one without, alone and beside pods that use all CPUs they get.
func benchCores(t *testing.T, ctx context.Context, s *Site, rounds int) {
	kernel := filepath.Join(user.Home(), "kernel")
	if err := run(ctx, "", []string{"CGO_ENABLED=0"}, "go", "build", "-o", kernel, "../bench/kernel"); err != nil {
		t.Fatal(err)
	}
	rates := map[string][]float64{}
	for range rounds {
		for _, noise := range []string{"", "compute", "memory"} {
			for _, node := range []string{"n1", "n3"} {
				// The job is first: a pod beside it never gets its CPU then.
				id := submit(t, ctx, s, "-w", node, "-n1", "--mem=512", "-o", "kernel.out", "--wrap",
					"until [ -e kernel.go ]; do sleep 0.1; done; "+
						"srun ./kernel memory "+kernelSeconds+"; srun ./kernel cache "+kernelSeconds)
				waitUntil(t, ctx, s, id, "RUNNING")
				if noise != "" {
					neighbour(t, ctx, s, node, "noise", "./kernel noise-"+noise+" 4")
				}
				writeHome(t, "kernel.go", "")
				waitForState(t, ctx, s, id, "COMPLETED")
				for line := range strings.Lines(output(t, "kernel.out")) {
					f := strings.Fields(line)
					rate, err := strconv.ParseFloat(f[len(f)-1], 64)
					if err != nil {
						t.Fatal(line)
					}
					key := noise + "|" + node + "|" + f[0]
					rates[key] = append(rates[key], rate)
				}
				if err := os.Remove(filepath.Join(user.Home(), "kernel.go")); err != nil {
					t.Fatal(err)
				}
				if noise != "" {
					remove(t, ctx, s, "noise")
				}
			}
		}
	}
	for _, kind := range []string{"memory", "cache"} {
		for _, noise := range []string{"", "compute", "memory"} {
			for _, node := range []string{"n1", "n3"} {
				r := rates[noise+"|"+node+"|"+kind]
				slices.Sort(r)
				beside := map[string]string{"": "alone", "compute": "beside four busy threads", "memory": "beside four threads that stream memory"}
				manager := map[string]string{"n1": "static CPU manager", "n3": "no CPU manager"}
				measured(t, kind+"-bound kernel, "+beside[noise]+", "+manager[node], "%.1f GB/s (%.1f to %.1f)",
					r[len(r)/2], r[0], r[len(r)-1])
			}
		}
	}
}
