package localclustertest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/localclustertest"
)

// shortLife is how long the certificates of the test's cluster are valid.
const shortLife = 20 * time.Second

// commands runs commands against a cluster.
type commands struct {
	t   *testing.T
	dir string // where they run
	c   *localclustertest.Cluster
}

func (r *commands) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.c.BinDir, name), args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + r.c.BinDir + ":/usr/bin:/bin", "KUBECONFIG=" + r.c.Kubeconfig, "HOME=" + r.dir}
	return cmd
}

// run returns what a command prints; it must succeed.
func (r *commands) run(name string, args ...string) string {
	r.t.Helper()
	out, err := r.command(name, args...).CombinedOutput()
	if err != nil {
		r.t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// writeJob writes the script of a job on two nodes that continues when the file go exists.
func writeJob(t *testing.T, dir string) (script, gate, result string) {
	t.Helper()
	script, gate, result = filepath.Join(dir, "job.sh"), filepath.Join(dir, "go"), filepath.Join(dir, "result")
	text := fmt.Sprintf("#!/bin/bash\nset -e\nuntil [ -e %s ]; do sleep 0.1; done\nsqueue -h -o %%i -j $SLURM_JOB_ID >%s\n"+
		"srun -N2 -n2 echo step >>%s\nsbatch --wrap true >>%s\n", gate, result, result, result)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return script, gate, result
}

// TestClusterOutlivesItsCertificates runs a cluster whose certificates are valid for seconds.
// After all the first ones have expired, jobs, agents, commands and kubelets must still
// reach one another, those that run since then and new ones.
func TestClusterOutlivesItsCertificates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; not with -short")
	}
	// Clients in Kubernetes' libraries look every five minutes otherwise.
	transport.CertCallbackRefreshDuration = time.Second
	r := &commands{t: t, dir: t.TempDir()}
	r.c = localclustertest.Start(t, localclustertest.Nodes(2, 4, 1000), func(c *localcluster.Config) {
		_, err := exec.LookPath("ssh")
		c.CertificateLife, c.Login = shortLife, err == nil
	})
	if _, err := os.Stat(filepath.Join(r.c.BinDir, "agent")); err != nil {
		t.Skip("needs the programs of make build")
	}
	first, err := tls.X509KeyPair(r.c.Admin.CertData, r.c.Admin.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	script, gate, result := writeJob(t, r.dir)
	id := r.run("sbatch", "--parsable", "-N2", script)
	eventually.Holds(t, "the job runs", func() bool { return r.run("squeue", "-h", "-o", "%t", "-j", id) == "R" })
	seen := r.startWatch()
	time.Sleep(time.Until(first.Leaf.NotAfter) + time.Second) // the test is what happens then
	expired := rest.CopyConfig(r.c.Admin)
	expired.BearerToken = "" // which is valid until the cluster stops
	old, err := kubernetes.NewForConfig(expired)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate that has expired: %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the job of before ends", func() bool { return r.run("squeue", "-h", "-j", id) == "" })
	text, err := os.ReadFile(result)
	if want := id + "\nstep\nstep\nSubmitted batch job "; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("the job of before: %q, %v, want %q", text, err, want)
	}
	r.commandsWork(seen)
	r.logsAreServed()
	r.loginWorks()
}

// loginWorks runs a command on the login node, which gets a token for it from the API server.
func (r *commands) loginWorks() {
	r.t.Helper()
	if r.c.Login == "" {
		r.t.Log("without ssh: the login node is not tested")
		return
	}
	line := strings.Fields(r.c.Login)
	args := append([]string{"-F", "/dev/null", "-o", "BatchMode=yes"}, line[1:]...)
	cmd := exec.CommandContext(r.t.Context(), line[0], append(args, "squeue -h -o queue:%j")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("squeue on the login node: %v\n%s", err, out)
	}
}

// startWatch starts a command that runs until the end of the test, and returns the file with
// its output.
func (r *commands) startWatch() (output string) {
	r.t.Helper()
	f, err := os.Create(filepath.Join(r.dir, "queue"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	watch := r.command("squeue", "-i", "1", "-o", "queue:%j")
	watch.Stdout, watch.Stderr = f, f
	if err := watch.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = watch.Process.Kill()
		_ = watch.Wait()
	})
	return f.Name()
}

// commandsWork runs commands of all kinds. The file has what squeue -i prints.
func (r *commands) commandsWork(queue string) {
	r.t.Helper()
	if out := r.run("srun", "-N2", "echo", "new"); out != "new\nnew" {
		r.t.Errorf("srun: %q", out)
	}
	r.run("sbatch", "--wait", "-o", "/dev/null", "--wrap", "squeue")
	held := r.run("sbatch", "--parsable", "-H", "-J", "late", "--wrap", "true")
	eventually.Holds(r.t, "squeue -i shows the new job", func() bool {
		text, err := os.ReadFile(queue)
		return err == nil && strings.Contains(string(text), "queue:late")
	})
	r.run("sinfo")
	r.run("sacct", "-X")
	r.run("scontrol", "update", "nodename=n1", "state=drain", "reason=x")
	r.run("scontrol", "update", "nodename=n1", "state=resume")
	r.run("scancel", held)
}

// logsAreServed reads the log of a pod, which the API server gets from the kubelet.
func (r *commands) logsAreServed() {
	r.t.Helper()
	id := r.run("sbatch", "--parsable", "--wrap", "sleep 60")
	eventually.Holds(r.t, "the last job runs", func() bool { return r.run("squeue", "-h", "-o", "%t", "-j", id) == "R" })
	admin, err := clientcmd.BuildConfigFromFlags("", r.c.Kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(admin)
	pods, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		r.t.Fatalf("no pods: %v", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		_, err := client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		if err != nil {
			r.t.Errorf("log of pod %s: %v", p.Name, err)
		}
	}
	r.run("scancel", id)
}
