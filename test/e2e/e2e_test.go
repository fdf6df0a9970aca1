package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
)

// cluster is the local cluster all scripts of one run share.
type cluster struct {
	bin, state string
}

// start starts a cluster and stops it at the end of the test.
func start(t *testing.T, args ...string) *cluster {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"berth", "berth-local", "agent", "sbatch", "srun"} {
		if _, err := os.Stat(filepath.Join(bin, b)); err != nil {
			t.Fatalf("bin/%s is missing: run make build", b)
		}
	}
	// Not t.TempDir: users other than the test's must be able to pass through.
	state, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{bin: bin, state: filepath.Join(state, "cluster")}
	t.Cleanup(func() {
		c.down(t)
		if t.Failed() {
			t.Logf("state kept in %s; the end of the cluster's log:\n%s", state, c.logTail())
			return
		}
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	c.up(t, args...)
	return c
}

// logTail returns the end of the cluster's log, because the machine may be gone when
// the failure is read.
func (c *cluster) logTail() []byte {
	log, err := os.ReadFile(filepath.Join(c.state, "log"))
	if err != nil {
		return []byte(err.Error())
	}
	return log[max(0, len(log)-10_000):]
}

func (c *cluster) up(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, "berth"), append([]string{"up", "--state-dir", c.state}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("berth up: %v\n%s", err, out)
	}
	t.Logf("berth up:\n%s", out)
}

func (c *cluster) down(t *testing.T) {
	out, err := exec.Command(filepath.Join(c.bin, "berth"), "down", "--state-dir", c.state).CombinedOutput()
	if err != nil {
		t.Errorf("berth down: %v\n%s", err, out)
	}
}

// currentUser is the name of the user who runs the tests.
var currentUser = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil {
		panic(err) // a user who may run commands of a cluster has a name
	}
	return u.Username
})

// environ is the environment of a user's shell with our commands first.
func (c *cluster) environ(home string) []string {
	return []string{
		// Debian's own directories: the MPI modules belong to Debian's Python.
		"PATH=" + c.bin + ":/usr/local/bin:/usr/bin:/bin",
		"KUBECONFIG=" + filepath.Join(c.state, "kubeconfig"),
		"HOME=" + home, "USER=" + currentUser(), "LANG=C.UTF-8",
	}
}

func (c *cluster) scripts(t *testing.T, dir string, env ...string) {
	testscript.Run(t, c.params(dir, env...))
}

// scriptsInTurn runs scripts one after another, because they take nodes from one another.
func (c *cluster) scriptsInTurn(t *testing.T, dir string) {
	testscript.RunT(inTurn{t}, c.params(dir))
}

// inTurn is a test whose subtests run one after another.
type inTurn struct{ *testing.T }

func (inTurn) Parallel() {}

func (inTurn) Verbose() bool { return testing.Verbose() }

func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

func (c *cluster) params(dir string, env ...string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, c.environ(e.WorkDir)...)
			e.Vars = append(append(e.Vars, env...), "BIN="+c.bin, "STATE="+c.state,
				"EXAMPLES="+filepath.Join(filepath.Dir(c.bin), "examples"),
				// mpirun of OpenMPI refuses to run as root without these.
				"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			return os.Chmod(e.WorkDir, 0o755)
		},
		Condition: func(name string) (bool, error) {
			switch kind, value, _ := strings.Cut(name, ":"); kind {
			case "full":
				return os.Getenv("BERTH_TEST_FULL") != "", nil
			case "program":
				return isCheckout(value), nil
			case "python":
				return hasModules(value), nil
			case "pmix":
			default:
				return false, fmt.Errorf("unknown condition %q", name)
			}
			_, err := os.Stat(filepath.Join(c.bin, wire.PMIxServer))
			return err == nil || os.Getenv("CI") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"job":   submit,
			"ends":  ends,
			"until": until,
		},
	}
}

// submit is the script command `job VAR ARGS...`: it submits with sbatch and stores the
// job's id in VAR.
func submit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: job VAR sbatch-arguments...")
	}
	ts.Check(ts.Exec("sbatch", append([]string{"--parsable"}, args[1:]...)...))
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// final are the states a job ends in (squeue(1), JOB STATE CODES).
var final = []string{"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}

// ends is the script command `ends ID STATE`: it waits until the job has ended and
// fails unless that is its state.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends ID STATE")
	}
	var state string
	poll(ts, "job "+args[0]+" to end", func() bool {
		ts.Check(ts.Exec("squeue", "-h", "-t", "all", "-j", args[0], "-o", "%T"))
		state = strings.TrimSpace(ts.ReadFile("stdout"))
		return slices.Contains(final, state)
	})
	if state != args[1] {
		_ = ts.Exec("scontrol", "show", "job", args[0]) // its output is in the log
		ts.Fatalf("job %s ended %s, want %s", args[0], state, args[1])
	}
}

// until is the script command `until TEXT COMMAND...`: it repeats the command
// until its output contains TEXT.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until TEXT COMMAND...")
	}
	poll(ts, fmt.Sprintf("%q from %v", args[0], args[1:]), func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0])
	})
}

func poll(ts *testscript.TestScript, what string, done func() bool) {
	deadline := time.Now().Add(eventually.Timeout)
	for !done() {
		if time.Now().After(deadline) {
			ts.Fatalf("waited %v for %s; stdout %q stderr %q", eventually.Timeout, what, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	start(t, "--nodes", "3", "--cpus", "4", "--gpus", "2").scripts(t, "testdata/script")
}

// TestPolicies has scripts that take nodes away from others, on a cluster of
// its own: drained nodes, reservations, licenses, preemption.
func TestPolicies(t *testing.T) {
	t.Parallel()
	start(t, "--slurm-conf", "testdata/policy/slurm.conf").scriptsInTurn(t, "testdata/policy")
}

// TestReservations has scripts that depend on which nodes are free.
func TestReservations(t *testing.T) {
	t.Parallel()
	start(t, "--slurm-conf", "testdata/reservations/slurm.conf").scriptsInTurn(t, "testdata/reservations")
}

// TestSite runs jobs with a site's prologs and epilogs.
func TestSite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := "ClusterName=site\nNodeName=n[1-2] CPUs=2 RealMemory=2000\nPartitionName=main Nodes=ALL Default=YES\nKillWait=5\n"
	for name, text := range map[string]string{
		"Prolog":     "[ ! -e $dir/fail ] || exit 3; echo prolog $SLURMD_NODENAME of $SLURM_JOB_ID >> $dir/log.$SLURM_JOB_ID",
		"Epilog":     "echo epilog $SLURMD_NODENAME $SLURM_JOB_EXIT_CODE2 >> $dir/log.$SLURM_JOB_ID",
		"TaskProlog": "echo export FROM_SITE=by the site",
		"SrunProlog": "echo srun $SLURM_SCRIPT_CONTEXT >&2",
	} {
		path := filepath.Join(dir, strings.ToLower(strings.Replace(name, "TaskP", "task-p", 1)))
		if err := os.WriteFile(path, []byte("#!/bin/sh\ndir="+dir+"\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		conf += name + "=" + path + "\n"
	}
	file := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, "--slurm-conf", file).scripts(t, "testdata/site", "SITE="+dir)
}

// TestNodeDown makes a node fail on which several jobs run.
func TestNodeDown(t *testing.T) {
	t.Parallel()
	start(t, "--nodes", "2", "--cpus", "4").scriptsInTurn(t, "testdata/down")
}

// TestMPI needs Debian's openmpi-bin, mpich and python3-mpi4py.
func TestMPI(t *testing.T) {
	for _, program := range []string{"mpirun.openmpi", "mpirun.mpich", "python3"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: apt-get install openmpi-bin mpich python3-mpi4py", program)
		}
		t.Skipf("%s is missing: apt-get install openmpi-bin mpich python3-mpi4py", program)
	}
	start(t, "--nodes", "3", "--cpus", "4").scripts(t, "testdata/mpi")
}

// TestUnequalNodes has its own cluster, because the allocation of its job depends on
// which CPUs are free.
func TestUnequalNodes(t *testing.T) {
	t.Parallel()
	start(t, "--nodes", "3", "--cpus", "4").scripts(t, "testdata/unequal")
}

// TestTopology has clusters with the switches and the blocks of a topology.conf, and its
// scripts need to know which nodes are free.
func TestTopology(t *testing.T) {
	for _, dir := range []string{"testdata/topology", "testdata/blocks"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			start(t, "--slurm-conf", dir+"/slurm.conf").scriptsInTurn(t, dir)
		})
	}
}

// TestStateSurvives submits a job that cannot start, takes the cluster down and
// up again, and finds the job where it was, with its id.
func TestStateSurvives(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes", "1", "--cpus", "2")
	home := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.Command(filepath.Join(c.bin, name), args...)
		cmd.Env, cmd.Dir = c.environ(home), home
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	id := run("sbatch", "--parsable", "--hold", "--wrap", "true")
	c.down(t)
	c.up(t)
	if got := run("squeue", "-h", "-j", id, "-o", "%i %T %r"); got != id+" PENDING JobHeldUser" {
		t.Errorf("after down and up: %q", got)
	}
	next := run("sbatch", "--parsable", "--wrap", "true")
	if len(next) <= len(id) && next <= id {
		t.Errorf("id %s after %s", next, id)
	}
}

// TestAccounts has its own cluster: once accounts are defined, jobs of other scripts
// could not name theirs.
func TestAccounts(t *testing.T) {
	t.Parallel()
	start(t, "--nodes", "2", "--cpus", "4").scripts(t, "testdata/accounts")
}

// TestPools has a cluster with nodes that run only while jobs need them. Its scripts run one
// after another, because they count them.
func TestPools(t *testing.T) {
	start(t, "--slurm-conf", "testdata/pools/slurm.conf").scriptsInTurn(t, "testdata/pools")
}

// TestPoolFailures has a cluster whose nodes do not come in time. Its ResumeTimeout is short, so
// that nothing else depends on how fast the machine is.
func TestPoolFailures(t *testing.T) {
	start(t, "--slurm-conf", "testdata/poolfailures/slurm.conf").scriptsInTurn(t, "testdata/poolfailures")
}
