package app_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/control"
)

// crashTime is how long the jobs may take in the worst case.
const crashTime = 3 * time.Minute

// external is a local cluster whose scheduler is a process of the test.
type external struct {
	t          *testing.T
	dir, bin   string
	kubeconfig string
	flags      []string // of its scheduler
	client     client.Client
}

// startExternal starts a cluster without a scheduler, for crashTime. It skips the test
// with -short.
func startExternal(t *testing.T) (context.Context, *external) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute; not with -short")
	}
	dir := t.TempDir()
	x := &external{t: t, dir: dir, bin: programs(t, dir)}
	ctx, cancel := context.WithTimeout(t.Context(), crashTime)
	t.Cleanup(cancel)
	state := filepath.Join(dir, "state")
	up(ctx, t, x.bin, state)
	args, err := os.ReadFile(filepath.Join(state, "scheduler.args"))
	if err != nil {
		t.Fatal(err)
	}
	x.flags, x.kubeconfig = strings.Fields(string(args)), filepath.Join(state, "kubeconfig")
	x.client = adminClient(t, x.kubeconfig)
	return ctx, x
}

// scheduler starts a scheduler for the cluster, with a log of that name.
func (x *external) scheduler(name string, more ...string) *victim {
	x.t.Helper()
	v := &victim{t: x.t, path: filepath.Join(x.bin, "scheduler"), args: append(x.flags[:len(x.flags):len(x.flags)], more...),
		log: filepath.Join(x.dir, name+".log")}
	v.start()
	x.t.Cleanup(v.stop)
	return v
}

// programs returns the directory with the programs of a cluster: those of make build, or
// else new ones.
func programs(t *testing.T, dir string) string {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	there := true
	for _, name := range []string{"berth-local", "scheduler", "agent", "srun", "berth"} {
		_, err := os.Stat(filepath.Join(bin, name))
		there = there && err == nil
	}
	if there {
		return bin
	}
	bin = filepath.Join(dir, "bin") + "/"
	const version = "-X k8s.io/component-base/version.gitVersion=v1.36.3 " +
		"-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
	const module = "github.com/berth-hpc/berth/cmd/"
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", version, "-o", bin,
		module+"berth-local", module+"scheduler", module+"agent", module+"srun", module+"berth")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// up starts a local cluster without a scheduler.
func up(ctx context.Context, t *testing.T, bin, state string) {
	t.Helper()
	local := filepath.Join(bin, "berth-local")
	cmd := exec.CommandContext(ctx, local, "run", "--scheduler=external", "--nodes=3", "--cpus=8", "--state-dir", state)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(local, "down", "--state-dir", state).CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
}

// victim is a process that is killed and restarted.
type victim struct {
	t    *testing.T
	path string
	args []string
	log  string
	cmd  *exec.Cmd
}

func (v *victim) start() {
	log, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer log.Close()
	v.cmd = exec.Command(v.path, v.args...)
	v.cmd.Stdout, v.cmd.Stderr = log, log
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) stop() {
	_ = v.cmd.Process.Signal(syscall.SIGKILL)
	_ = v.cmd.Wait()
}

// logs returns a function that reports whether the process has logged the text.
func (v *victim) logs(text string) func() bool {
	return func() bool {
		log, err := os.ReadFile(v.log)
		return err == nil && strings.Contains(string(log), text)
	}
}

func adminClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: control.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
