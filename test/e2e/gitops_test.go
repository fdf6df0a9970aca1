package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// flux is Flux's library, which has a repository of one file.
type flux struct {
	t                   *testing.T
	binary, config, dir string
}

// newFlux builds the program of test/gitops.
func newFlux(t *testing.T, kubeconfig string) *flux {
	t.Helper()
	f := &flux{t: t, config: kubeconfig, dir: t.TempDir()}
	f.binary = filepath.Join(f.dir, "gitops")
	cmd := exec.Command("go", "build", "-o", f.binary, ".")
	cmd.Dir = "../gitops"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return f
}

// run returns the objects of the repository by what Flux does, or would do, with them.
func (f *flux) run(verb, repository string) map[string][]string {
	f.t.Helper()
	file := filepath.Join(f.dir, "repository.yaml")
	if err := os.WriteFile(file, []byte(repository), 0o600); err != nil {
		f.t.Fatal(err)
	}
	out, err := exec.Command(f.binary, verb, f.config, file).CombinedOutput()
	if err != nil {
		f.t.Fatalf("gitops %s: %v\n%s", verb, err, out)
	}
	actions := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		object, action, _ := strings.Cut(strings.TrimSpace(line), " ")
		actions[action] = append(actions[action], object)
	}
	for _, list := range actions {
		slices.Sort(list)
	}
	return actions
}

// drift expects that Flux reports a drift of exactly these objects.
func (f *flux) drift(repository string, want ...string) {
	f.t.Helper()
	got := f.run("diff", repository)
	if !slices.Equal(got["configured"], want) || len(got["created"]) > 0 {
		f.t.Errorf("drift %v, want %v", got, want)
	}
}

// TestGitOps: Flux's library applies what berth export prints, finds no drift afterwards, also
// while jobs run, and reports exactly the objects whose fields in the repository scontrol and
// sacctmgr have changed. It reverts these, and leaves alone what the repository does not say and
// objects that are IfNotPresent.
func TestGitOps(t *testing.T) {
	t.Parallel()
	first := &database{start(t, "--slurm-conf", "testdata/pools/slurm.conf"), t, "", ""}
	must := func(d *database, lines ...string) string {
		t.Helper()
		var last string
		for _, line := range lines {
			words := strings.Fields(line)
			code, out, errs := d.run(words[0], words[1:]...)
			if code != 0 {
				t.Fatalf("%s: %d %s%s", line, code, out, errs)
			}
			last = out
		}
		return last
	}
	must(first,
		"scontrol update partitionname=main maxtime=30 allowqos=normal",
		"scontrol create partitionname=small nodes=n1 maxtime=5",
		"sacctmgr -i add account science description=research organization=lab fairshare=7 grptres=cpu=64",
		"sacctmgr -i add qos fast priority=10 maxwall=30",
		"sacctmgr -i modify account science set qos=fast",
	)
	repository := first.export()
	second := &database{start(t, "--nodes", "1", "--cpus", "2"), t, "", ""}
	f := newFlux(t, filepath.Join(second.state, "kubeconfig"))
	applied := f.run("apply", repository)
	if !slices.Contains(applied["created"], "Partition/small") || !slices.Contains(applied["created"], "Account/science") {
		t.Errorf("applied: %v", applied)
	}
	again := f.run("apply", repository)
	if len(again["unchanged"]) == 0 || len(again) != 1 {
		t.Errorf("applied again: %v", slices.Collect(maps.Keys(again)))
	}
	must(second, "srun -n1 true", "sbatch -o /dev/null --wrap true", "scontrol update nodename=n1 state=drain reason=fan")
	f.drift(repository)

	must(second, "scontrol update partitionname=main maxtime=60")
	f.drift(repository, "Partition/main")
	must(second, "sacctmgr -i modify account science set fairshare=9", "sacctmgr -i modify qos fast set priority=20")
	f.drift(repository, "Account/science", "Partition/main", "QOS/fast")
	// The repository says nothing about these.
	must(second, "scontrol update partitionname=small priorityjobfactor=7", "sacctmgr -i add account other",
		"sacctmgr -i modify account science set grpjobs=5")
	f.drift(repository, "Account/science", "Partition/main", "QOS/fast")
	if marked := second.export(); !strings.Contains(marked, "# changed with scontrol: spec.maxTime\n") {
		t.Errorf("berth export does not mark the change:\n%s", marked)
	}
	if reverted := f.run("apply", repository)["configured"]; !slices.Equal(reverted, []string{"Account/science", "Partition/main", "QOS/fast"}) {
		t.Errorf("reverted: %v", reverted)
	}
	f.drift(repository)
	if out := must(second, "scontrol -o show partition main"); !strings.Contains(out, "MaxTime=00:30:00") {
		t.Errorf("main is not as in the repository: %s", out)
	}
	if out := must(second, "scontrol -o show partition small"); !strings.Contains(out, "PriorityJobFactor=7") {
		t.Errorf("small is not as with scontrol: %s", out)
	}

	const small = "kind: Partition\nmetadata:\n  name: small\n"
	left := strings.Replace(repository, small, small+"  annotations:\n    kustomize.toolkit.fluxcd.io/ssa: IfNotPresent\n", 1)
	must(second, "scontrol update partitionname=small maxtime=3")
	f.drift(repository, "Partition/small")
	f.drift(left)
	if got := f.run("apply", left); !slices.Equal(got["skipped"], []string{"Partition/small"}) {
		t.Errorf("with an object that is IfNotPresent: %v", got)
	}
	if out := must(second, "scontrol -o show partition small"); !strings.Contains(out, "MaxTime=00:03:00") {
		t.Errorf("small is not as with scontrol: %s", out)
	}
}
