package option

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTableIsComplete checks the rows of the table.
func TestTableIsComplete(t *testing.T) {
	letters := map[Command]map[byte]string{Sbatch: {}, Srun: {}, Salloc: {}}
	for _, o := range Table() {
		if o.Help == "" || o.In == 0 || o.Arg != NoArg && o.Meta == "" {
			t.Errorf("--%s: the help, the commands or the name of the value is missing", o.Name)
		}
		for _, c := range []Command{Sbatch, Srun, Salloc} {
			if o.In&c == 0 {
				continue
			}
			if Lookup(c, o.Name) != o {
				t.Errorf("%s --%s: two rows of one name", c, o.Name)
			}
			if other := letters[c][o.Short]; o.Short != 0 && other != "" {
				t.Errorf("%s -%c: --%s and --%s", c, o.Short, other, o.Name)
			}
			letters[c][o.Short] = o.Name
			if status, reason := o.For(c); (status == Supported) != (reason == "") {
				t.Errorf("%s --%s: %v with reason %q", c, o.Name, status, reason)
			}
			if status, _ := o.For(c); status == Supported && o.set == nil {
				t.Errorf("%s --%s: supported, but has no setter", c, o.Name)
			}
		}
	}
}

// TestHelpNamesOptions checks that the tables of the help texts name existing options.
func TestHelpNamesOptions(t *testing.T) {
	known := map[string]bool{"help": true}
	for _, o := range Table() {
		known[o.Name] = true
	}
	for name := range sections {
		if !known[name] {
			t.Errorf("a section of --help has --%s, which does not exist", name)
		}
	}
	for _, c := range allCommandOptions() {
		for _, o := range c.List() {
			known[o.Name] = true
		}
	}
	for name := range usageWords {
		if !known[name] {
			t.Errorf("--usage has a word for --%s, which does not exist", name)
		}
	}
}

// TestOrderOfPossibilities: the names that an abbreviation may stand for are in the order of
// Slurm's table.
func TestOrderOfPossibilities(t *testing.T) {
	for abbreviation, want := range map[string]string{
		"--b": "'--batch' '--begin' '--bb' '--bbf'", "--clu": "'--cluster-constraint' '--cluster' '--clusters'",
		"--con": "'--container' '--context' '--contiguous' '--constraint'",
	} {
		_, err := Parse(Sbatch, []string{abbreviation}, nil)
		if err == nil || !strings.HasSuffix(err.Error(), "; possibilities: "+want) {
			t.Errorf("%s: %v, want %s", abbreviation, err, want)
		}
	}
}

// TestOptionsOfVariables: an option of the environment that has no effect is reported outside
// of a job; in one, the user knows it since the submission.
func TestOptionsOfVariables(t *testing.T) {
	for env, want := range map[string]int{"SLURM_THREAD_SPEC=1": 1, "SLURM_THREAD_SPEC=1 SLURM_JOB_ID=7": 0} {
		p, err := Parse(Srun, []string{"true"}, strings.Fields(env))
		if err != nil || len(p.Warnings) != want {
			t.Errorf("%s: %v, %v", env, p, err)
		}
	}
}

func TestParseSrun(t *testing.T) {
	p, err := Parse(
		Srun,
		[]string{
			"-N2",
			"-n",
			"4",
			"--ntasks-per-node=2",
			"--nodel",
			"n1,n2",
			"-lK",
			"--mpi=none",
			"--input",
			"none",
			"./a.out",
			"-n",
			"9",
		},
		[]string{"SLURM_NTASKS=8", "SLURM_JOB_ID=7", "SLURM_CPU_BIND=none", "PATH=/bin"},
	)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Job.Shape
	if s.MinNodes != 2 || s.MaxNodes != 2 || s.Tasks != 4 || s.TasksPerNode != 2 || p.Step.JobID != 7 {
		t.Errorf("shape %+v, job %d", s, p.Step.JobID)
	}
	if !slices.Equal(p.Job.Placement.NodeList, []string{"n1", "n2"}) || !p.Step.Label || p.Step.KillOnBadExit == nil ||
		p.Step.CPUBind != "none" {
		t.Errorf("%+v %+v", p.Job.Placement, p.Step)
	}
	if !slices.Equal(p.Args, []string{"./a.out", "-n", "9"}) || p.Given["ntasks"].From != FromCommandLine ||
		len(p.Warnings) > 0 {
		t.Errorf("args %q, %+v, warnings %q", p.Args, p.Given, p.Warnings)
	}
}

// TestTableHasSlurmsOptions compares the names with those of the commands of Slurm 22.05.8
// (from --help, and from getopt's lists of possibilities).
func TestTableHasSlurmsOptions(t *testing.T) {
	data, err := os.ReadFile("../testdata/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		known[strings.TrimSpace(line)] = true
		command, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, c := range []Command{Sbatch, Srun, Salloc} {
			if c.String() == command && Lookup(c, name) == nil {
				t.Errorf("%s --%s is missing", command, name)
			}
		}
	}
	if len(known) < 300 {
		t.Fatalf("only %d names", len(known))
	}
	for _, o := range Table() {
		for _, c := range []Command{Sbatch, Srun, Salloc} {
			if o.In&c != 0 && o.Since == "" && !known[c.String()+" "+o.Name] {
				t.Errorf("%s --%s is not an option of Slurm", c, o.Name)
			}
		}
	}
}

func TestUnpropagated(t *testing.T) {
	for _, tt := range []struct{ only, except, want string }{
		{"", "", ""}, {"ALL", "", ""}, {"NONE", "", strings.Join(Rlimits, " ")},
		{"", "RLIMIT_MEMLOCK,core", "MEMLOCK CORE"}, {"", "NONE", ""}, {"", "ALL", strings.Join(Rlimits, " ")},
		{"as,core,cpu,data,fsize,memlock,nproc,rss", "", "NOFILE STACK"},
	} {
		split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
		if got := strings.Join(Unpropagated(split(tt.only), split(tt.except)), " "); got != tt.want {
			t.Errorf("%q, except %q: %q, want %q", tt.only, tt.except, got, tt.want)
		}
	}
	if _, ok := RlimitNames([]string{"CORE", "foo"}); ok {
		t.Error("foo is a resource limit")
	}
}
