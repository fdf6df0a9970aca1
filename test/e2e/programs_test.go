package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// calls are commands with which programs query jobs and nodes, and how they parse the
// output: with the expression in their own sources, which must match each line (or any
// line, with any). RUN is the id of a job that runs on one node, DONE that of one that
// has ended, USER the caller.
var calls = []struct {
	program, call, pattern string
	any                    bool
}{
	{"Snakemake", `sbatch --parsable --hold -J prog-id --wrap true`, `^\d+(;\S+)?$`, false},
	{"Snakemake", `sacct -X --parsable2 --noheader --format=JobIdRaw,State --name prog-done`, `^\d+\|[A-Z_]+( by \d+)?$`, false},
	{"Snakemake", `squeue -h -j RUN --format '%i|%T'`, `^\d+\|RUNNING$`, false},
	{"Snakemake", `scontrol show config`, `(?m)^MinJobAge\s*=\s*\d+ sec$`, true},
	{"Nextflow", `sbatch --hold -J prog-id --wrap true`, `^Submitted batch job (\d+)$`, false},
	{"Nextflow", `squeue --noheader -o '%i %t' -t all -u USER`, `^[0-9_\[\]\-,%+]+ (PD|R|CA|CF|CG|CD|F|TO|NF|S|ST|OOM|PR)$`, false},
	{"Dask-jobqueue", `sbatch --hold -J prog-id --wrap true`, `(?P<job_id>\d+)`, false},
	{"submitit", `sacct -o JobID,State,NodeList --parsable2 -j DONE`, `^(JobID\|State\|NodeList|\d+(\.\w+)?\|[A-Z_ ]+[^|]*\|\S+)$`, false},
	{"submitit", `scontrol show hostnames 'a[1-3,07],b'`, `^(a[1-3]|a07|b)$`, false},
	{"Parsl", `squeue --noheader --format='%i %t' --job RUN`, `^\d+ R$`, false},
	{"Cromwell", `squeue -j RUN`, `^\s+(JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST\(REASON\)|\d+ +\S+ +prog-run +\S+ +R +[\d:-]+ +\d+ \S+)$`, false},
	{"reportseff", `sacct -P -n --format=AllocCPUS,Elapsed,JobID,JobIDRaw,MaxRSS,NNodes,REQMEM,State,TotalCPU --jobs=DONE`,
		`^\d+\|((\d+)-)?(\d{2}):(\d{2}):(\d{2})\|[^|]+\|[^|]+\|(\d+\.?\d*[KMGTE]?)?\|\d+\|(\d+\.?\d*[KMGTE?]?[nc]?)?\|[A-Z_ ]+\|((\d+)-)?((\d{2}):)?(\d{2}):(\d{2}(\.\d+)?)$`, false},
	{"slurm exporter", `sinfo -h -o %C`, `^\d+/\d+/\d+/\d+$`, false},
	{"slurm exporter", `sinfo -h -o %D,%T`, `^\d+,(allocated|completing|down|drained|draining|fail|error|idle|maint|mixed|reserved)[*~#!%$@+^-]?$`, false},
	{"slurm exporter", `squeue -a -r -h -o %A,%T,%r --states=all`, `^\d+,[A-Z_]+,\S.*$`, false},
	{"slurm exporter", `sinfo -h -N -O NodeList,AllocMem,Memory,CPUsState,StateLong`, `^\S+\s+\d+\s+\d+\s+\d+/\d+/\d+/\d+\s+\S+\s*$`, false},
	{"slurm exporter", `sshare -n -P -o account,fairshare`, `^ *\S+\|(|inf|\d+\.\d+)$`, false},
	{"slurm exporter", `sdiag`, `(?ms)^Server thread count:\s+\d+.*^Agent queue size:\s+\d+.*Last cycle:\s+\d+.*Last depth cycle`, true},
	{"Open OnDemand", `squeue --all --states=all --noconvert -h -j RUN -o '%a;%A;%B;%c;%C;%d;%D;%e;%E;%f;%F;%g;%G;%h;%H;%i;%I;%j;%J;%k;%K;%l;%L;%m;%M;%n;%N;%o;%O;%p;%q;%Q;%r;%S;%t;%T;%u;%U;%v;%V;%w;%x;%X;%Y;%y;%Z;%z'`, `^([^;]*;){46}[^;]*$`, false},
	{"Open OnDemand", `sinfo -a -h -o=%C/%A/%D`, `^=\d+/\d+/\d+/\d+/\d+/\d+/\d+$`, false},
	{"Open OnDemand", `sinfo -ahO partitionname`, `^\S+\s*$`, false},
	{"batchspawner", `squeue -h -j RUN -o '%T %B'`, `^(?:RUNNING|COMPLETING)\s+((?:[\w_-]+\.?)+)$`, false},
	{"AiiDA", `SLURM_TIME_FORMAT=standard squeue --noheader -o '%i^^^%t^^^%r^^^%B^^^%u^^^%D^^^%C^^^%R^^^%P^^^%l^^^%M^^^%S^^^%j^^^%V' --user=USER --states=R`,
		`^\d+\^\^\^R\^\^\^.*\^\^\^\S+\^\^\^\S+\^\^\^\d+\^\^\^\d+\^\^\^\S+\^\^\^\S+\^\^\^\S+\^\^\^[\d:-]+\^\^\^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\^\^\^\S+\^\^\^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`, false},
	{"fireworks", `squeue -h -o %u -u USER`, `^\S+$`, false},
	{"ReFrame", `sacct -S 00:00 -n -P -X -j DONE -o jobid,state,exitcode,end,nodelist`, `^(?P<jobid>\d+)\|(?P<state>\S+)([^\|]*)\|(?P<exitcode>\d+)\:(?P<signal>\d+)\|(?P<end>\S+)\|(?P<nodespec>.*)$`, false},
	{"ReFrame", `squeue -h -j RUN -o '%i|%T|%N|%r'`, `^\d+\|RUNNING\|\S+\|None$`, false},
	{"ReFrame", `scontrol -a show -o nodes`, `NodeName=(\S+) .*State=(\S+).*`, false},
	{"ReFrame", `scontrol -a show -o partition`, `PartitionName=(\S+) .*Nodes=(\S+).*State=(\S+)`, false},
	{"seff", `sacct -P -n -a --format JobID,User,Group,State,Cluster,AllocCPUS,REQMEM,TotalCPU,Elapsed,MaxRSS,ExitCode,NNodes,NTasks -j DONE`, `^([^|]*\|){12}[^|]*$`, false},
	{"turm", `squeue -j RUN --array --noheader --Format jobid:###,name:###,state:###,username:###,timeused:###,StartTime:###,tres-alloc:###,partition:###,nodelist:###,stdout:###,stderr:###,command:###,statecompact:###,reason:###,ArrayJobID:###,ArrayTaskID:###,NodeList:###,WorkDir:###`,
		`^\d+###prog-run###RUNNING###\S+###[\d:-]+###\d\S+###\S+###\S+###\S+###/\S+###/\S+###.*###R###None###\d+###N/A###\S+###/\S+###$`, false},
	{"DRMAA", `scontrol -o show job RUN`, `^JobId=\d+ JobName=prog-run UserId=\S+\(\d+\) .* JobState=RUNNING Reason=\S+ .* ExitCode=\d+:\d+ .* BatchHost=\S+ `, false},
	{"JupyterHub, Galaxy", `scontrol show job DONE`, `(?s)JobState=COMPLETED .*ExitCode=0:0.*SubmitTime=\S+ EligibleTime=\S+.*NodeList=\S+.*StdOut=/`, true},
	{"OpenMPI", `srun --version`, `^slurm(-wlm)? \d+\.\d+\.\d+$`, false},
	{"PyTorch Lightning", `scontrol show hostname 'n[1-2]'`, `^n[12]$`, false},
	{"tests of HPC programs", `scontrol ping`, `^Slurmctld\(primary\) at \S+ is UP$`, false},
	{"tests of HPC programs", `sinfo -h -N -o '%N|%t' -e`, `^\S+\|(idle|mix|alloc|comp|resv)$`, false},
	{"login scripts", `sacctmgr -n -s list user USER format=account%20`, `^ +\S+ $`, false},
}

// TestPrograms runs each call and parses the output as its program does: with a local
// cluster, and with the Slurm whose commands are in the directory BERTH_TEST_SLURM, which
// shows that the expressions are right.
func TestPrograms(t *testing.T) {
	t.Parallel()
	if directory := os.Getenv("BERTH_TEST_SLURM"); directory != "" {
		t.Run("Slurm", func(t *testing.T) { parse(t, append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"))) })
	}
	if state := os.Getenv("BERTH_TEST_CLUSTER"); state != "" { // a running cluster
		bin, err := filepath.Abs("../../bin")
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{bin: bin, state: state}
		t.Run("Berth", func(t *testing.T) { parse(t, c.environ(t.TempDir())) })
		return
	}
	c := start(t, "--nodes", "2", "--cpus", "4")
	t.Run("Berth", func(t *testing.T) {
		env := c.environ(t.TempDir())
		if out, err := command(env, "sacctmgr -i add account prog && sacctmgr -i add user "+currentUser()+" account=prog"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		parse(t, env)
	})
}

// programs is the directory with checkouts of other projects' repositories, or empty.
func programs() string {
	dir, err := filepath.Abs(os.Getenv("BERTH_PROGRAMS"))
	if err != nil || os.Getenv("BERTH_PROGRAMS") == "" {
		return ""
	}
	return dir
}

// isCheckout reports whether the directory of programs has one of this name.
func isCheckout(name string) bool {
	info, err := os.Stat(filepath.Join(programs(), name))
	return programs() != "" && err == nil && info.IsDir()
}

// hasModules reports whether Python finds all the modules of a list with commas.
func hasModules(names string) bool {
	find := "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1].split(','))))"
	return exec.Command("/usr/bin/python3", "-c", find, names).Run() == nil
}

// TestInstalledPrograms runs other projects' programs that call Slurm's commands, as far as
// they are installed (Debian's clustershell, r-cran-batchtools, snakemake, toil, parallel) or
// are in the directory BERTH_PROGRAMS. On the same cluster it runs the launch recipes of
// frameworks, and the probes of the table of changes.
func TestInstalledPrograms(t *testing.T) {
	t.Parallel()
	c := start(t, "--slurm-conf", "testdata/examples/slurm.conf", "--login")
	env := c.environ(t.TempDir())
	if out, err := command(env, "sacctmgr -i add account lab && sacctmgr -i add user "+currentUser()+" account=lab"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Run("programs", func(t *testing.T) {
		t.Parallel()
		c.scripts(t, "testdata/programs", "PROGRAMS="+programs(), "PYTHONDONTWRITEBYTECODE=1")
	})
	t.Run("examples", func(t *testing.T) {
		t.Parallel()
		c.examples(t)
	})
	t.Run("changes", func(t *testing.T) {
		t.Parallel()
		changes(t, env)
	})
}

func command(env []string, line string) (string, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Env, cmd.Dir = env, "/tmp"
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// parse runs the calls in the environment env, and parses their output.
func parse(t *testing.T, env []string) {
	must := func(line string) string {
		t.Helper()
		out, err := command(env, line)
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return out
	}
	run := must("sbatch --parsable -J prog-run -N1 -n1 --mem=10 -t 5 -o /dev/null --wrap 'sleep 300'")
	done := must("sbatch --parsable -J prog-done -N1 -n1 --mem=10 -t 5 -o /dev/null --wrap true")
	defer must("scancel -n prog-run; scancel -n prog-id")
	eventually.Holds(t, "one job runs and the other has ended", func() bool {
		return must(fmt.Sprintf("squeue -h -t all -o %%T -j %s,%s -S i", run, done)) == "RUNNING\nCOMPLETED" &&
			strings.HasPrefix(must("sacct -n -X -P -o State -j "+done+" --name prog-done"), "COMPLETED")
	})
	user, _ := command(env, "id -un")
	names := strings.NewReplacer("RUN", run, "DONE", done, "USER", user)
	for _, c := range calls {
		line := names.Replace(c.call)
		t.Run(c.program+": "+strings.Fields(strings.TrimPrefix(line, "SLURM_TIME_FORMAT=standard "))[0], func(t *testing.T) {
			out := must(line)
			pattern := regexp.MustCompile(c.pattern)
			parts := strings.Split(out, "\n")
			if c.any {
				parts = []string{out}
			}
			for _, part := range parts {
				if part != "" && !pattern.MatchString(part) || out == "" {
					t.Errorf("%s\nprints %q,\nwhich does not match %s", line, part, c.pattern)
				}
			}
		})
	}
}
