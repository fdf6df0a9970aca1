//go:build e2ereal

package realnode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testDNS queries the cluster's DNS from inside a job. The job knows its hosts by their
// pods' addresses, and by their names without DNS.
func testDNS(t *testing.T, ctx context.Context, s *Site) {
	out := runJob(t, ctx, s, "dns", "-N2", "-J", "dns", "-o", "dns-%j.out", "--wrap", `
cat /etc/resolv.conf >&2
api=$(getent ahostsv4 berth-api.berth-system.svc.cluster.local | awk 'NR == 1 { print $1 }'); echo api ${api:-unknown}
short=$(getent ahostsv4 kubernetes.default | awk 'NR == 1 { print $1 }'); echo kubernetes ${short:-unknown}
for host in $(scontrol show hostnames); do
	address=$(getent ahostsv4 $host | awk 'NR == 1 { print $1 }')
	name=$(echo $address | tr . -).`+namespace+`.pod.cluster.local
	echo $host $([ "$(getent ahostsv4 $name | awk 'NR == 1 { print $1 }')" = "$address" ] && echo known)
done`)
	service, err := s.Client.CoreV1().Services("berth-system").Get(ctx, "berth-api", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nameserver " + dnsAddress, "api " + service.Spec.ClusterIP, "kubernetes 10.255.0.1"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^n[123] known$`).FindAllString(out, -1)); n != 2 {
		t.Errorf("%d of 2 hosts are known", n)
	}
}

// testTerminal runs a shell on a node, on a terminal of its own.
func testTerminal(t *testing.T, ctx context.Context, s *Site) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, "srun"), "-N1", "-n1", "-t5", "--pty", "sh")
	cmd.Dir = user.Home()
	cmd.Env = []string{"HOME=" + user.Home(), "USER=" + user.Name, "TERM=dumb", "PATH=" + s.Bin + ":/usr/bin:/bin"}
	terminal, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 33, Cols: 101}, &syscall.SysProcAttr{
		Setsid: true, Setctty: true, Credential: &syscall.Credential{Uid: user.ID, Gid: user.ID}})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if _, err := io.WriteString(terminal, "tty; stty size; echo $((6 * 7)) lines; exit 7\n"); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	_, _ = io.Copy(&output, terminal) // EIO at the end
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 7 || !strings.Contains(output.String(), "/dev/pts/") ||
		!strings.Contains(output.String(), "33 101\r\n") || !strings.Contains(output.String(), "42 lines\r\n") {
		t.Errorf("%v:\n%s", err, output.String())
	}
}

// testHetJob runs two components of different sizes, which start together.
func testHetJob(t *testing.T, ctx context.Context, s *Site) {
	writeHome(t, "het.sh", `#!/bin/sh
#SBATCH -J het -o het-%j.out -N1 -n1
#SBATCH hetjob
#SBATCH -N2 -n2
echo "$SLURM_HET_SIZE components, $SLURM_JOB_NUM_NODES_HET_GROUP_0 and $SLURM_JOB_NUM_NODES_HET_GROUP_1 nodes"
srun --het-group=1 hostname | sort
`)
	out := runJob(t, ctx, s, "het", "het.sh")
	if m, _ := regexp.MatchString(`\A2 components, 1 and 2 nodes\nn[123]\nn[123]\n\z`, out); !m {
		t.Errorf("the job wrote %q", out)
	}
}

// testDrain drains the node of a job: the job continues, and no other starts there.
func testDrain(t *testing.T, ctx context.Context, s *Site) {
	as := func(command string, args ...string) string {
		out, err := s.As(ctx, operator, operator.Home(), command, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	old := submit(t, ctx, s, "-w", "n2", "-N1", "-o", "drained.out", "--wrap", "echo started; until [ -e drained ]; do sleep 0.1; done; echo done")
	waitForOutput(t, ctx, "drained.out", "started\n")
	as("scontrol", "update", "nodename=n2", "state=drain", "reason=bad disk")
	if output := as("sinfo", "-h", "-R", "-o", "%E|%u|%N"); output != "bad disk|operator|n2\n" {
		t.Errorf("sinfo -R: %q", output)
	}
	if node, err := s.Client.CoreV1().Nodes().Get(ctx, "n2", metav1.GetOptions{}); err != nil || !node.Spec.Unschedulable {
		t.Errorf("the node is not cordoned: %v", err)
	}
	late := submit(t, ctx, s, "-w", "n2", "-N1", "-o", "late.out", "--wrap", "echo late")
	elsewhere := submit(t, ctx, s, "-N1", "-o", "elsewhere.out", "--wrap", "hostname")
	waitForState(t, ctx, s, elsewhere, "COMPLETED")
	if out := output(t, "elsewhere.out"); out == "n2\n" {
		t.Error("a job started on the drained node")
	}
	writeHome(t, "drained", "")
	waitForState(t, ctx, s, old, "COMPLETED")
	if out := output(t, "drained.out"); out != "started\ndone\n" {
		t.Errorf("the job on the drained node wrote %q", out)
	}
	if state := strings.TrimSpace(as("squeue", "-h", "-j", late, "-o", "%T")); state != "PENDING" {
		t.Errorf("the job that requires the drained node is %s", state)
	}
	as("scontrol", "update", "nodename=n2", "state=resume")
	waitForState(t, ctx, s, late, "COMPLETED")
}

// testEviction evicts the pod of a job from a cordoned node, as kubectl drain does: the
// eviction is refused until the job has ended, and no other job starts there.
func testEviction(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-w", "n2", "-N1", "-o", "evicted.out", "--wrap", "echo started; until [ -e evicted ]; do sleep 0.1; done; echo done")
	waitForOutput(t, ctx, "evicted.out", "started\n")
	setUnschedulable(t, ctx, s, "n2", true)
	defer setUnschedulable(t, ctx, s, "n2", false)
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "berth.hpc/job-id=" + id})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	evict := func() error {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: pods.Items[0].Name}
		return s.Client.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: meta})
	}
	// Until the budget has counted the pod, the API server refuses as well.
	if err := evict(); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("the eviction: %v", err)
	}
	elsewhere := submit(t, ctx, s, "-N1", "-o", "elsewhere.out", "--wrap", "hostname")
	waitForState(t, ctx, s, elsewhere, "COMPLETED")
	if out := output(t, "elsewhere.out"); out == "n2\n" {
		t.Error("a job started on the cordoned node")
	}
	writeHome(t, "evicted", "")
	waitForState(t, ctx, s, id, "COMPLETED")
	if out := output(t, "evicted.out"); out != "started\ndone\n" {
		t.Errorf("the job wrote %q", out)
	}
	if err := waitFor(ctx, time.Minute, func() bool {
		err := evict()
		return err == nil || apierrors.IsNotFound(err)
	}); err != nil {
		t.Errorf("the pod of the job that has ended cannot be evicted: %v", err)
	}
}

// setUnschedulable cordons a node, or ends that.
func setUnschedulable(t *testing.T, ctx context.Context, s *Site, node string, v bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, v)
	if _, err := s.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testDeadKubelet kills the kubelet of a job's node: the job is requeued and runs on the other
// node.
func testDeadKubelet(t *testing.T, ctx context.Context, s *Site) {
	setSlurmdTimeout(t, ctx, s, 5)
	// The first node is allocated, so that the job starts on the second.
	first := submit(t, ctx, s, "-w", "n1", "-N1", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600")
	waitUntil(t, ctx, s, first, "RUNNING")
	id := submit(t, ctx, s, "-N1", "--requeue", "-o", "again.out", "--open-mode=append", "--wrap",
		`echo "on $(hostname), restarts ${SLURM_RESTART_COUNT:-0}"; [ -n "$SLURM_RESTART_COUNT" ] || sleep 600`)
	waitForOutput(t, ctx, "again.out", "on n2, restarts 0\n")
	if _, err := s.As(ctx, user, user.Home(), "scancel", first); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.nodes[1].killDaemon("kubelet"); err != nil {
		t.Fatal(err)
	}
	waitForState(t, ctx, s, id, "COMPLETED")
	t.Logf("requeued and over %.0f s after the kubelet was killed", time.Since(began).Seconds())
	if m, _ := regexp.MatchString(`\Aon n2, restarts 0\n.* ON n2 CANCELLED AT .* DUE TO JOB REQUEUE .*\non n1, restarts 1\n\z`, output(t, "again.out")); !m {
		t.Errorf("the job wrote %q", output(t, "again.out"))
	}
	if shown, err := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id); err != nil || !strings.Contains(shown, "Restarts=1") {
		t.Errorf("scontrol show job: %s, %v", shown, err)
	}
}

// waitUntil waits until a job is in a state.
func waitUntil(t *testing.T, ctx context.Context, s *Site, id, want string) {
	t.Helper()
	var output string
	err := waitFor(ctx, time.Minute, func() bool {
		output, _ = s.As(ctx, user, user.Home(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		return strings.TrimSpace(output) == want
	})
	if err != nil {
		t.Fatalf("job %s is %q, want %s: %v", id, output, want, err)
	}
}

// killDaemon kills one of the node's daemons, with which the others end; the containers
// continue.
func (n *node) killDaemon(name string) error {
	pid := n.cmd.Process.Pid
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return err
	}
	for _, file := range threads {
		children, err := os.ReadFile(file)
		if err != nil {
			continue // that thread has exited
		}
		for _, child := range strings.Fields(string(children)) {
			called, err := os.ReadFile("/proc/" + child + "/comm")
			if err != nil || !strings.HasPrefix(strings.TrimSpace(string(called)), name) {
				continue
			}
			var number int
			if _, err := fmt.Sscan(child, &number); err != nil {
				return err
			}
			return syscall.Kill(number, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("node %s has no %s", n.spec.Name, name)
}
