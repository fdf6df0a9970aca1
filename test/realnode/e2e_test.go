//go:build e2ereal

package realnode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// binVariable names the directory of the binaries; the default is the module's bin.
const binVariable = "BERTH_BIN"

func TestMain(m *testing.M) { os.Exit(Run(m.Run)) }

var (
	user = User{Name: "mpiuser", ID: 15001}
	// other has another uid and a namespace that enforces the restricted standard.
	other = User{Name: "other", ID: 70007}
	// operator has the permissions for the tests of nodes.
	operator = User{Name: "operator", ID: 15002, Level: "Operator"}
)

const namespace = "user-mpiuser"

// cases are the tests, in their order. Short runs omit the long ones.
var cases = []struct {
	name string
	long bool
	test func(*testing.T, context.Context, *Site)
}{
	{"doctor", false, testDoctor},
	{"names", false, testNames},
	{"image of the job", false, testContainerImage},
	{"managed fields", false, testManagedFields},
	{"mpirun", false, func(t *testing.T, ctx context.Context, s *Site) { testRing(t, ctx, s, "openmpi", "openmpi.sh") }},
	{"mpich", true, func(t *testing.T, ctx context.Context, s *Site) { testRing(t, ctx, s, "mpich", "mpich.sh") }},
	{"ring", true, func(t *testing.T, ctx context.Context, s *Site) {
		testRing(t, ctx, s, "ring", "--export=ALL,RING=./ring", "ring.sh")
	}},
	{"srun", false, testSteps},
	{"terminal", false, testTerminal},
	{"cluster DNS", false, testDNS},
	{"commands in a job", false, testCommands},
	{"exit code", true, testExitCode},
	{"array", false, testArray},
	{"heterogeneous job", true, testHetJob},
	{"signal", true, testSignal},
	{"allocation", true, testAllocation},
	{"gpu", true, testGPU},
	{"devices", false, testDevices},
	{"driver gone", true, testDriverGone},
	{"scancel", true, testCancel},
	{"memory limit", false, testMemory},
	{"nothing but a shell", false, testShell},
	{"read-only root", false, testReadOnly},
	{"restricted namespace", false, testStrict},
	{"network policies", false, testPolicies},
	{"login node", false, testLogin},
	{"login pods", true, testLoginPods},
	{"overhead", true, testOverhead},
	{"bench", true, testBench}, // after overhead: in make bench-real only
	{"drain", true, testDrain},
	{"eviction", false, testEviction},
	{"scheduler killed", true, testRestart},
	{"daemons killed", false, testDaemonsKilled},
	{"daemons killed under load", true, testDaemonsKilledUnderLoad},
	{"node away", true, testNodeAway},
	{"node lost", false, testLostNode},        // the last that needs three
	{"kubelet killed", true, testDeadKubelet}, // the last that needs two
	{"accounting", false, testAccounting},
	{"nothing is left", false, testNothingLeft},
}

// TestRealNodes runs jobs of ordinary users on three real nodes.
func TestRealNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 18*time.Minute)
	defer cancel()
	site := open(t, ctx)
	home := user.Home()
	for _, dir := range []string{"testdata", "../../examples/mpi", "../../examples/ring"} {
		if err := os.CopyFS(home, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(ctx, "", []string{"CGO_ENABLED=0"}, "go", "build", "-o", filepath.Join(home, "ring"), "../../examples/ring"); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			c.test(t, ctx, site)
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// open opens the site and installs Berth there.
func open(t *testing.T, ctx context.Context) *Site {
	t.Helper()
	return install(t, ctx, openSite(t, ctx))
}

// install installs Berth on the site.
func install(t *testing.T, ctx context.Context, site *Site) *Site {
	t.Helper()
	began := time.Now()
	if err := site.Install(ctx); err != nil {
		t.Fatal(err)
	}
	addOwnPodsOnly(t, ctx, site)
	waitForState(t, ctx, site, submit(t, ctx, site, "-o", "/dev/null", "--wrap", "true"), "COMPLETED")
	measured(t, "from `helm install` to the end of the first job", "%.1f s", time.Since(began).Seconds())
	return site
}

// openSite opens the site, whose state a failing test prints.
func openSite(t *testing.T, ctx context.Context) *Site {
	t.Helper()
	return openSiteOn(t, ctx, nil)
}

// openSiteOn is openSite with nodes of that hardware.
func openSiteOn(t *testing.T, ctx context.Context, hardware map[string]Hardware) *Site {
	t.Helper()
	bin := os.Getenv(binVariable)
	if bin == "" {
		root, err := moduleRoot()
		if err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(root, "bin")
	}
	user.Keys = []string{loginKey(t)}
	site, err := Open(ctx, Options{Bin: bin, Users: []User{user, other, operator}, Hardware: hardware})
	t.Cleanup(func() {
		if t.Failed() {
			var b bytes.Buffer
			site.Dump(context.WithoutCancel(ctx), &b, namespace)
			t.Log(b.String())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// testDoctor runs berth doctor with a working installation.
func testDoctor(t *testing.T, ctx context.Context, s *Site) {
	out, err := s.As(ctx, user, user.Home(), "berth", "doctor")
	if err != nil || strings.Contains(out, "wrong ") || !strings.Contains(out, "3 nodes can run jobs") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// testRing runs one of the examples: a ring of three ranks on three nodes.
func testRing(t *testing.T, ctx context.Context, s *Site, name string, args ...string) {
	out := runJob(t, ctx, s, name, args...)
	for i, node := range nodeNames {
		if line := fmt.Sprintf("rank %d of 3 on %s\n", i, node); !strings.Contains(out, line) {
			t.Errorf("%q is missing", line)
		}
	}
	if !strings.HasSuffix(out, "ring of 3 ok\n") {
		t.Error("the token did not come back")
	}
}

func testSteps(t *testing.T, ctx context.Context, s *Site) {
	out := runJob(t, ctx, s, "slurm", "srun.sh")
	if want := "batch on n1 of n[1-3] as 15001\n"; !strings.HasPrefix(out, want) {
		t.Errorf("the output does not begin with %q", want)
	}
	checkRanks(t, out, 6)
}

func testCommands(t *testing.T, ctx context.Context, s *Site) {
	out := runJob(t, ctx, s, "slurm", "commands.sh")
	m := regexp.MustCompile(`(?m)^self \d+ RUNNING n\d\n(\d+)$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal("squeue and sbatch inside the job printed something else")
	}
	waitForState(t, ctx, s, m[1], "COMPLETED")
	if follow := output(t, "follow.out"); follow != "followed by 15001\n" {
		t.Errorf("output of the follow-up job: %q", follow)
	}
}

func testExitCode(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-N2", "--wrap", "srun -n2 true; exit 3")
	waitForState(t, ctx, s, id, "FAILED")
	shown, err := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
	if err != nil || !strings.Contains(shown, "ExitCode=3:0") {
		t.Errorf("scontrol show job: %s, %v", shown, err)
	}
}

func testCancel(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-N3", "-o", "cancel.out", "--wrap", "echo started; srun sleep 600")
	waitForOutput(t, ctx, "cancel.out", "started\n")
	if _, err := s.As(ctx, user, user.Home(), "scancel", id); err != nil {
		t.Fatal(err)
	}
	waitForState(t, ctx, s, id, "CANCELLED")
}

// testMemory uses more memory than the job requested, on one node of two.
func testMemory(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-N1", "--mem=64M", "-o", "memory.out", "--wrap", `python3 -c "x = bytearray(256 << 20)" && echo survived`)
	waitForState(t, ctx, s, id, "OUT_OF_MEMORY")
	if out := output(t, "memory.out"); strings.Contains(out, "survived") {
		t.Errorf("the limit did not hold: %s", out)
	}
}

// testRestart kills the scheduler while a job runs and another waits.
func testRestart(t *testing.T, ctx context.Context, s *Site) {
	first := submit(t, ctx, s, "-N3", "--exclusive", "-o", "first.out", "--wrap", "echo started; until [ -e go ]; do sleep 0.1; done; echo done")
	second := submit(t, ctx, s, "-N3", "--exclusive", "-o", "second.out", "--wrap", "echo once")
	waitForOutput(t, ctx, "first.out", "started\n")
	if err := s.KillScheduler(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(user.Home(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	waitForOutput(t, ctx, "first.out", "started\ndone\n")
	waitForState(t, ctx, s, first, "COMPLETED")
	waitForState(t, ctx, s, second, "COMPLETED")
	if out := output(t, "second.out"); out != "once\n" {
		t.Errorf("the job that waited wrote %q", out)
	}
}

// testAccounting runs sacct for the jobs of the previous tests, some of which ran while
// the scheduler was unavailable.
func testAccounting(t *testing.T, ctx context.Context, s *Site) {
	var wrong []string
	err := waitFor(ctx, time.Minute, func() bool {
		out, err := s.As(ctx, operator, operator.Home(), "sacct", "-a", "-n", "-X", "-P", "-o", "JobID,State")
		states := map[string]string{}
		for line := range strings.Lines(out) {
			id, state, _ := strings.Cut(strings.TrimSpace(line), "|")
			states[id], _, _ = strings.Cut(state, " ") // CANCELLED by ...
		}
		wrong = nil
		for id, state := range ended {
			if states[id] != state && states[id+"+0"] != state {
				wrong = append(wrong, fmt.Sprintf("%s is %q, was %s", id, states[id], state))
			}
		}
		return err == nil && len(wrong) == 0
	})
	if err != nil || len(ended) == 0 {
		t.Errorf("of %d jobs sacct shows other states: %v: %v", len(ended), wrong, err)
	}
}

// submit submits a job from the user's home and returns its id.
func submit(t *testing.T, ctx context.Context, s *Site, args ...string) string {
	t.Helper()
	return submitAs(t, ctx, s, user, args...)
}

func submitAs(t *testing.T, ctx context.Context, s *Site, u User, args ...string) string {
	t.Helper()
	output, err := s.As(ctx, u, u.Home(), "sbatch", args...)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := strings.CutPrefix(strings.TrimSpace(output), "Submitted batch job ")
	if !ok {
		t.Fatalf("sbatch printed %q", output)
	}
	return id
}

// runJob submits a job, which must succeed, and returns the contents of its output file,
// NAME-ID.out.
func runJob(t *testing.T, ctx context.Context, s *Site, name string, args ...string) string {
	t.Helper()
	began := time.Now()
	id := submit(t, ctx, s, args...)
	file := name + "-" + id + ".out"
	defer func() {
		if t.Failed() {
			b, err := os.ReadFile(filepath.Join(user.Home(), file))
			t.Logf("%s: %s %v", file, b, err)
		}
	}()
	waitForState(t, ctx, s, id, "COMPLETED")
	out := output(t, file)
	t.Logf("sbatch %v: job %s, %.1f s:\n%s", args, id, time.Since(began).Seconds(), out)
	return out
}

// output is the content of a file in the user's home.
func output(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(user.Home(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func waitForOutput(t *testing.T, ctx context.Context, name, want string) {
	t.Helper()
	var b []byte
	err := waitFor(ctx, time.Minute, func() bool {
		b, _ = os.ReadFile(filepath.Join(user.Home(), name))
		return string(b) == want
	})
	if err != nil {
		t.Fatalf("%s holds %q, want %q: %v", name, b, want, err)
	}
}

// final are the states in which a job ends.
var final = []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL"}

// ended has the final states of the tests' jobs.
var ended = map[string]string{}

// waitForState waits until a job has ended, in the expected state.
func waitForState(t *testing.T, ctx context.Context, s *Site, id, want string) {
	t.Helper()
	var state string
	var squeue error
	err := waitFor(ctx, 3*time.Minute, func() bool {
		var out string
		out, squeue = s.As(ctx, user, user.Home(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		state = strings.Join(slices.Compact(strings.Fields(out)), " ") // several of a heterogeneous job
		return slices.Contains(final, state)
	})
	if err != nil || state != want {
		shown, _ := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
		t.Fatalf("%s: job %s: state %s, want %s (%v, %v)\n%s", time.Now().Format(time.TimeOnly), id, state, want, err, squeue, shown)
	}
	ended[id] = state
}

// checkRanks checks that each of n ranks is there once, in order of the ring or of arrival,
// each at home on its node.
func checkRanks(t *testing.T, out string, n int) {
	t.Helper()
	var hosts []string
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^rank (\d+) of (\d+): host (\S+) node (\S+)$`).FindAllStringSubmatch(out, -1) {
		if m[2] != fmt.Sprint(n) || m[3] != m[4] || seen[m[1]] {
			t.Errorf("wrong: %s", m[0])
		}
		seen[m[1]] = true
		hosts = append(hosts, m[3])
	}
	slices.Sort(hosts)
	if len(seen) != n || !slices.Equal(slices.Compact(hosts), nodeNames) {
		t.Errorf("%d ranks on %v, want %d on %v", len(seen), hosts, n, nodeNames)
	}
}

// testNothingLeft waits until the objects of the finished jobs are gone.
func testNothingLeft(t *testing.T, ctx context.Context, s *Site) {
	var left []string
	err := waitFor(ctx, time.Minute, func() bool {
		left = leftovers(ctx, s)
		return len(left) == 0
	})
	if err != nil {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func leftovers(ctx context.Context, s *Site) []string {
	objects, err := jobObjects(ctx, s)
	var left []string
	if err != nil {
		left = append(left, err.Error())
	}
	for resource, items := range objects {
		for _, o := range items {
			left = append(left, resource+"/"+o.Name)
		}
	}
	return left
}

// jobObjects returns the objects that run the user's jobs, by resource.
func jobObjects(ctx context.Context, s *Site) (map[string][]metav1.PartialObjectMetadata, error) {
	objects := map[string][]metav1.PartialObjectMetadata{}
	var errs []error
	for _, path := range []string{
		"/api/v1/namespaces/%s/pods", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets",
		"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/%s/podgroups", "/apis/batch/v1/namespaces/%s/jobs",
	} {
		var list metav1.PartialObjectMetadataList
		b, err := s.Client.CoreV1().RESTClient().Get().AbsPath(fmt.Sprintf(path, namespace)).DoRaw(ctx)
		if err == nil {
			err = json.Unmarshal(b, &list)
		}
		errs = append(errs, err)
		objects[filepath.Base(path)] = list.Items
	}
	return objects, errors.Join(errs...)
}

// testManagedFields checks that the objects of a running job, as the chart's policies require,
// have no managedFields.
func testManagedFields(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-o", "/dev/null", "--wrap", "sleep 300")
	waitUntil(t, ctx, s, id, "RUNNING")
	objects, err := jobObjects(ctx, s)
	if err != nil {
		t.Error(err)
	}
	for resource, items := range objects {
		if len(items) == 0 {
			t.Errorf("there are no %s of a running job", resource)
		}
		for _, o := range items {
			if len(o.ManagedFields) > 0 {
				t.Errorf("%s %s has managedFields of %s", resource, o.Name, o.ManagedFields[0].Manager)
			}
		}
	}
	if out, err := s.As(ctx, user, user.Home(), "scancel", id); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	waitForState(t, ctx, s, id, "CANCELLED")
}
