package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// sruns runs each line in one batch script of a job with three nodes of two CPUs, and
// returns the sorted output of each.
func sruns(t *testing.T, lines ...string) []string {
	t.Helper()
	script := "#!/bin/bash\nexec 2>&1\nmark() { echo \"### $1\"; }\n"
	for i, l := range lines {
		script += fmt.Sprintf("mark %d\n{ %s; } </dev/null; echo rc=$?\n", i, l)
	}
	g := start(t, shape{cpus: []int32{2, 2, 2}, script: script, job: func(j *job.Job) { j.Shape.MinNodes = 3 }})
	r, out := g.finish()
	if r.Kind != wire.ReportEnded {
		t.Fatalf("report %+v", r)
	}
	out = strings.ReplaceAll(stampRE.ReplaceAllString(out, "TIME"), itoa(g.id), "JOB")
	out = strings.ReplaceAll(out, g.dir, "DIR")
	parts := strings.Split(out, "### ")[1:]
	if len(parts) != len(lines) {
		t.Fatalf("%d parts of %d:\n%s", len(parts), len(lines), out)
	}
	for i, p := range parts {
		_, body, _ := strings.Cut(p, "\n")
		list := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		sort.Strings(list)
		parts[i] = strings.Join(list, "\n")
	}
	return parts
}

// stepTests are commands in a job with three nodes of two CPUs, and the sorted lines that
// Slurm 22.05.8 writes.
var stepTests = []struct{ command, want string }{
	{
		`srun sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME $SLURM_STEP_ID $SLURM_NODEID $SLURM_LOCALID $SLURM_STEP_NODELIST'`,
		"0 n1 0 0 0 n[1-3]\n1 n2 0 1 0 n[1-3]\n2 n3 0 2 0 n[1-3]\nrc=0",
	},
	{`srun -n 6 sh -c 'exit $((SLURM_PROCID+2))'`,
		"rc=7\nsrun: error: n1: task 0: Exited with exit code 2\nsrun: error: n1: task 1: Exited with exit code 3\n" +
			"srun: error: n2: task 2: Exited with exit code 4\nsrun: error: n2: task 3: Exited with exit code 5\n" +
			"srun: error: n3: task 4: Exited with exit code 6\nsrun: error: n3: task 5: Exited with exit code 7"},
	{`srun -N1 -n2 sh -c 'kill -SEGV $$'`, "rc=139\nsrun: error: n1: tasks 0-1: Segmentation fault"},
	{
		`srun -n1 -N1 nosuchcmd`,
		"rc=2\nslurmstepd: error: execve(): nosuchcmd: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2",
	},
	{
		`srun -n1 -N1 /tmp`,
		"rc=13\nslurmstepd: error: execve(): /tmp: Permission denied\nsrun: error: n1: task 0: Exited with exit code 13",
	},
	{`srun -l sh -c 'echo hi; printf part; echo err >&2'`,
		"0: err\n0: hi\n0: part\n1: err\n1: hi\n1: part\n2: err\n2: hi\n2: part\nrc=0"},
	{`srun -N1 -n1 --chdir /usr pwd`, "/usr\nrc=0"},
	{
		`srun -N1 -n1 -D /nonexist pwd`,
		"/tmp\nrc=0\nslurmstepd: error: couldn't chdir to `/nonexist': No such file or directory: going to /tmp instead\n" +
			"slurmstepd: error: couldn't chdir to `/nonexist': No such file or directory: going to /tmp instead",
	},
	{`echo hello | srun -l cat`, "0: hello\n1: hello\n2: hello\nrc=0"},
	{`echo hello | srun -l -i none cat`, "rc=0"},
	{`echo hello | srun -l -i 1 cat`, "1: hello\nrc=0"},
	{`echo hello | srun -l --input=all cat`, "0: hello\n1: hello\n2: hello\nrc=0"},
	{`echo here > in; srun -l --input=in cat`, "0: here\n1: here\n2: here\nrc=0"},
	{`srun -n1 -N1 -i 7 cat`, "rc=1\nsrun: error: Could not open stdin file: No such file or directory"},
	{`srun --input=/etc/nonexist cat`, "rc=1\nsrun: error: Could not open stdin file: No such file or directory"},
	{
		`srun -o o-%j-%s-%t-%N-%n.out -e e-%t.err sh -c 'echo o; echo e >&2'; ls o-* e-*; cat o-* e-*`,
		"e\ne\ne\ne-0.err\ne-1.err\ne-2.err\no\no\no\no-JOB-13-0-n1-0.out\no-JOB-13-1-n2-1.out\no-JOB-13-2-n3-2.out\nrc=0",
	},
	{`srun -o file sh -c 'echo o; echo e >&2'; sort file`, "e\ne\ne\no\no\no\nrc=0"},
	{`srun -o none hostname`, "rc=0"},
	{`srun -n2 -N1 -o 2 echo x; cat 2`, "rc=0\nx\nx"},
	{`SLURM_TEST_EXEC=1 srun nosuchcmd`, "rc=1\nsrun: fatal: Can not execute nosuchcmd"},
	{`SLURM_TEST_EXEC=1 srun -N1 -n1 echo there`, "rc=0\nthere"},
	{`SLURM_SRUN_REDUCE_TASK_EXIT_MSG=1 srun sh -c 'exit 3' 2>err; echo is $?; grep -c Exited err`, "1\nis 3\nrc=0"},
	{`SLURM_UMASK=0027 srun -N1 -n1 sh -c umask`, "0027\nrc=0"},
	{`srun -o 1 sh -c 'echo $SLURM_PROCID; echo e$SLURM_PROCID >&2'`, "1\ne1\nrc=0"},
	{`srun -o /nonexistdir/x hostname`, "rc=1\nsrun: error: Could not open stdout file: No such file or directory"},
	{
		`srun -N1 -n1 -e /nonexistdir/%t hostname`,
		"rc=1\nslurmstepd: error: Could not open stderr file /nonexistdir/0: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 1",
	},
	{`srun`, "rc=1\nsrun: fatal: No command given to execute."},
	{`srun --bogus hostname`, "Try \"srun --help\" for more information\nrc=255\nsrun: unrecognized option '--bogus'"},
	{
		`srun -n 13 true`,
		"rc=1\nsrun: error: Unable to create step for job JOB: More processors requested than permitted",
	},
	{`srun -N 5 true`, "rc=1\nsrun: error: Only allocated 3 nodes asked for 5"},
	{
		`srun -N2 -r 2 true`,
		"rc=1\nsrun: error: --relative and --nodes option incompatible with count of allocated nodes (2+2>3)",
	},
	{`srun -x n1,n2,n3 -N1 true`, "rc=1\nsrun: error: Hostlist is empty!  Can't run job."},
	{
		`srun --propagate=FOO true`,
		"rc=1\nsrun: error: --propagate=FOO is not valid.\nsrun: error: Bad rlimit name: FOO",
	},
	{`srun -N1 -n1 --task-prolog=/nonexist true`, "rc=1\nslurmstepd: error: --task-prolog failed status=1\n" +
		"slurmstepd: error: run_command: user task_prolog can not be executed (/nonexist) No such file or directory\n" +
		"slurmstepd: error: user task_prolog did not exit normally. reason: Run command failed - configuration error\n" +
		"srun: error: n1: task 0: Exited with exit code 1"},
	{
		`srun -w n9 true`,
		"rc=1\nsrun: error: Unable to create step for job JOB: Requested node configuration is not available",
	},
	{`srun --export=NONE /usr/bin/env | grep -E '^(MARK|PATH|HOME)='`, "rc=1"},
	{`FOO=1 BAR=2 srun -N1 -n1 --export=FOO,X=3 /bin/sh -c 'echo $FOO $BAR $X'`, "1 3\nrc=0"},
	{
		`srun -K -l sh -c '[ $SLURM_PROCID = 1 ] && exit 4; exec sleep 600'`,
		"rc=143\nslurmstepd: error: *** STEP JOB.STEP ON n1 CANCELLED AT TIME ***\nsrun: Force Terminated StepId=JOB.STEP\n" +
			"srun: error: n1: task 0: Terminated\nsrun: error: n2: task 1: Exited with exit code 4\nsrun: error: n3: task 2: Terminated\n" +
			"srun: launch/slurm: _step_signal: Terminating StepId=JOB.STEP",
	},
	{`srun -W1 sh -c '[ $SLURM_PROCID = 1 ] && exit 4; exec sleep 600'`,
		"rc=137\nslurmstepd: error: *** STEP JOB.STEP ON n1 CANCELLED AT TIME ***\nsrun: First task exited 1s ago\n" +
			"srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\nsrun: StepId=JOB.STEP task 1: exited abnormally\n" +
			"srun: StepId=JOB.STEP tasks 0,2: running\nsrun: error: n1: task 0: Killed\nsrun: error: n2: task 1: Exited with exit code 4\n" +
			"srun: error: n3: task 2: Killed\nsrun: launch/slurm: _step_signal: Terminating StepId=JOB.STEP"},
	{
		`srun -N1 -n1 sh -c 'kill -KILL $$'`,
		"rc=137\nsrun: Force Terminated StepId=JOB.STEP\nsrun: error: n1: task 0: Killed",
	},
	{`srun -N1 -n1 sh -c 'kill -HUP $$'`, "rc=129\nsrun: error: n1: task 0: Hangup"},
	{`srun -Q -N1 -n1 sh -c 'kill -TERM $$'`, "rc=143\nsrun: error: n1: task 0: Terminated"},
	{`srun -N1 -n1 sh -c '(trap "" TERM HUP; sleep 600) & (setsid sleep 600 &) ; echo end'`, "end\nrc=0"},
	{
		`srun -n9 -O -l sh -c 'echo $SLURMD_NODENAME $SLURM_TASKS_PER_NODE'`,
		"0: n1 3(x3)\n1: n1 3(x3)\n2: n1 3(x3)\n3: n2 3(x3)\n4: n2 3(x3)\n5: n2 3(x3)\n6: n3 3(x3)\n7: n3 3(x3)\n8: n3 3(x3)\nrc=0",
	},
	{
		`srun -n2 -N1 sh -c 'echo ${SLURM_NNODES-x} ${SLURM_NTASKS-x} ${SLURM_NPROCS-x} ${SLURM_TASKS_PER_NODE-x} $SLURM_STEP_NUM_NODES $SLURM_STEP_TASKS_PER_NODE'`,
		"1 2 2 2 1 2\n1 2 2 2 1 2\nrc=0",
	},
	{`env -u SLURM_NPROCS -u SLURM_TASKS_PER_NODE SLURM_NNODES=1 SLURM_NTASKS=9 srun -E -N1 -n2 sh -c ` +
		`'echo ${SLURM_NNODES-x} ${SLURM_NTASKS-x} ${SLURM_NPROCS-x} ${SLURM_TASKS_PER_NODE-x} $SLURM_STEP_NUM_NODES $SLURM_STEP_TASKS_PER_NODE'`,
		"1 9 x x 1 2\n1 9 x x 1 2\nrc=0"},
	{`srun -l -N1 -n1 printenv SLURM_LABELIO`, "0: 1\nrc=0"},
	{`srun --preserve-env -n1 -N1 true`, "rc=0"},
	// With MpiParams=ports=12000-12999.
	{`srun -N1 -n1 sh -c 'echo ${SLURM_STEP_RESV_PORTS-none}'`, "none\nrc=0"},
	{`srun --resv-ports -N2 -n3 sh -c 'echo $SLURM_STEP_RESV_PORTS'`, "12000-12002\n12000-12002\n12000-12002\nrc=0"},
	{
		`srun --resv-ports=1 -N1 -n1 sh -c 'echo $SLURM_STEP_RESV_PORTS; srun --overlap --resv-ports=4 -N1 -n1 printenv SLURM_STEP_RESV_PORTS'`,
		"12000\n12001-12004\nrc=0",
	},
	{
		`srun --resv-ports=1001 true`,
		"rc=1\nsrun: error: Unable to create step for job JOB: Requires more ports than can be reserved",
	},
	{
		`srun --wait-for-children -N1 -n1 sh -c '(sleep 1; echo child) & (setsid sh -c "sleep 1; echo far" &) ; echo end'`,
		"child\nend\nfar\nrc=0",
	},
	{
		// A command in the background ignores SIGINT, unless env(1) undoes that.
		`env --default-signal=INT srun --wait-for-children --quit-on-interrupt -N1 -n1 sh -c '(sleep 600) & (setsid sleep 600 &) ; echo end' >quit 2>/dev/null & ` +
			`until grep -qs end quit; do sleep 0.05; done; kill -INT $!; wait $!; cat quit; echo gone`,
		"end\ngone\nrc=0",
	},
	{
		`srun --container-image=busybox -N1 -n1 true`,
		"rc=1\nsrun: error: pyxis: --container-image: a step runs in the containers of its job, which has not chosen an image\n" +
			"srun: error: pyxis: give --container-image to sbatch, salloc or an srun outside of a job",
	},
	{`srun --container-mounts=/usr,/tmp -N1 -n1 --container-workdir=/usr pwd`, "/usr\nrc=0"},
	{
		`srun --container-mounts=/usr:/else -N1 -n1 true`,
		"rc=1\nsrun: error: pyxis: --container-mounts: a step runs in the containers of its job, which does not have /else mounted so\n" +
			"srun: error: pyxis: give --container-mounts to sbatch, salloc or an srun outside of a job",
	},
	{`umask 027; srun -N1 -n1 sh -c umask; umask 022`, "0027\nrc=0"},
	{`srun -r 1 -N1 -n1 sh -c 'echo $SLURMD_NODENAME'`, "n2\nrc=0"},
	{
		`srun -w n3 -N1 -n1 sh -c 'exec srun --overlap -N1 -n1 -w n2 sh -c "echo nested \$SLURMD_NODENAME"'`,
		"nested n2\nrc=0",
	},
	{
		`srun --mpi=mvapich true`,
		"rc=1\nsrun: error: Couldn't find the specified plugin name for mpi/mvapich looking at all files\n" +
			"srun: error: Invalid MPI type 'mvapich', --mpi=list for acceptable types\n" +
			"srun: error: MPI: Cannot create context for mpi/mvapich\nsrun: error: MPI: Unable to load any plugin\n" +
			"srun: error: cannot find mpi plugin for mpi/mvapich",
	},
	{
		`srun -N1 -n1 --quit-on-interrupt sh -c 'trap "" INT TERM; touch q1; exec sleep 600' & until [ -e q1 ]; do sleep 0.05; done; kill -INT $!; wait $!`,
		"rc=137\nslurmstepd: error: *** STEP JOB.STEP ON n1 CANCELLED AT TIME ***\n" +
			"srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\nsrun: error: n1: task 0: Killed\n" +
			"srun: forcing job termination\nsrun: sending Ctrl-C to StepId=JOB.STEP",
	},
	{
		`srun -N1 -n1 --quit-on-interrupt sh -c 'touch q3; exec sleep 600' 2>err3 & until [ -e q3 ]; do sleep 0.05; done; kill -INT $!; wait $!; echo is $?; grep -c Interrupt err3`,
		"0\nis 130\nrc=1",
	},
	{
		`srun -N1 -n1 sh -c 'touch q2; exec sleep 600' & until [ -e q2 ]; do sleep 0.05; done; kill -QUIT $!; wait $!`,
		"rc=137\nslurmstepd: error: *** STEP JOB.STEP ON n1 CANCELLED AT TIME ***\nsrun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n" +
			"srun: Quit\nsrun: error: n1: task 0: Killed\nsrun: forcing job termination",
	},
	{
		`srun -N3 -n3 sh -c 'touch up3; until [ -e down3 ]; do sleep 0.05; done' & until [ -e up3 ]; do sleep 0.05; done;` +
			` srun -N3 -n3 true 2>err3 & until grep -qs retrying err3; do sleep 0.05; done; kill -INT $!; wait $!; echo code $?; touch down3; wait; cat err3`,
		"code 1\nrc=0\nsrun: Cancelled pending job step with signal 2\nsrun: Job JOB step creation temporarily disabled, retrying (Requested nodes are busy)\n" +
			"srun: error: Unable to create step for job JOB: Job/step already completing or completed",
	},
	{
		`srun -w n1 -x n1 true`,
		"rc=1\nsrun: error: Job not submitted.\nsrun: error: Requested node n1 is also in the excluded list.",
	},
	{
		`srun -x n1 -N3 true`,
		"rc=1\nsrun: error: Are required nodes explicitly excluded?\nsrun: error: Only allocated 2 nodes asked for 3",
	},
	{`srun -x 'n[1' true`, "rc=1\nsrun: error: Unable to create step for job JOB: Invalid node name specified"},
	{
		`srun -w 'n[1' true`,
		"rc=1\nsrun: error: Unable to create step for job JOB: Requested node configuration is not available",
	},
	{
		`srun -w n2,n1 -N1 -n1 sh -c 'echo $SLURMD_NODENAME'`,
		"n2\nrc=0\nsrun: error: Required nodelist includes more nodes than " +
			"permitted by max-node count (2 > 1). Eliminating nodes from the nodelist.",
	},
	{`srun -m arbitrary true`, "rc=1\nsrun: error: invalid number of tasks (-n 0)"},
	{`srun -m arbitrary -w n1,n3 -n 3 true`, "rc=1\nsrun: error: You asked for 3 tasks but hostlist specified 2 nodes"},
	{`srun -l -m arbitrary -w n3,n1,n3 sh -c 'echo $SLURMD_NODENAME'`, "0: n3\n1: n1\n2: n3\nrc=0"},
	{`srun --multi-prog /`, "rc=1\nsrun: error: Error reading multi_prog config file /"},
	{
		`: > empty.conf; srun -n1 -N1 --multi-prog empty.conf`,
		"rc=1\nsrun: error: Configuration file empty.conf invalid, no record for task id 0",
	},
	{`srun -n1 -N1 --pty -o x true`, "rc=1\nsrun: error: --error/--input/--output are incompatible with --pty"},
	{
		`srun -n1 -N1 --cpu-bind=mask_cpu:xyz true`,
		"rc=1\nsrun: error: Failed to validate number: xyz, the offending character is x\n" +
			"srun: fatal: Failed to parse --cpu-bind= values.",
	},
	{
		`srun -n1 -N1 --cpu-bind=map_cpu:0,1a true`,
		"rc=1\nsrun: error: Failed to validate number: 1a, the offending character is a\n" +
			"srun: fatal: Failed to parse --cpu-bind= values.",
	},
	{
		`srun -n1 -N1 --task-epilog=/no/such echo ran`,
		"ran\nrc=0\nslurmstepd: error: Could not run user task_epilog [/no/such]: access denied\n" +
			"slurmstepd: error: TaskEpilog failed status=-1",
	},
	{
		`srun -n1 -N1 --mem=5 --mem-per-cpu=5 true`,
		"rc=1\nsrun: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
	},
	{`srun -n1 -N1 --gres=fpga:3 true`, "rc=1\nsrun: error: Step requested GRES but job doesn't have GRES\n" +
		"srun: error: Unable to create step for job JOB: Invalid generic resource (gres) specification"},
	{`srun -n1 -N1 --mem-per-gpu=10 true`, "rc=1\nsrun: error: Step requested GRES but job doesn't have GRES\n" +
		"srun: error: Unable to create step for job JOB: Invalid generic resource (gres) specification"},
	{`FOO=a srun -n1 -N1 --export=ALL,FOO=b,BAR=c sh -c 'echo $FOO $BAR'`, "a c\nrc=0"},
	{`FOO=a srun -n1 -N1 --export=FOO=b /bin/sh -c 'echo $FOO'`, "b\nrc=0"},
	{`SLURM_EXPORT_ENV=ALL,FOO=b srun -n1 -N1 sh -c 'echo $FOO $SLURM_EXPORT_ENV'`, "b ALL,FOO=b\nrc=0"},
	{`srun -n1 -N1 -o 'back\\%j' true; ls back*`, "back%j\nrc=0"},
	{
		`srun --het-group=0 true`,
		"rc=1\nsrun: error: No directives to start application on any available hetjob components",
	},
	{`srun --het-group=2 true`, "rc=1\nsrun: error: Requested het-group offset exceeds highest hetjob index (2 > 0)"},
	{`srun -l -N1 -n1 --het-group=0,2 sh -c 'echo $SLURMD_NODENAME'`, "0: n1\n1: n2\nrc=0"},
	{`srun -l -N1 -n1 --het-group=1 echo one : --het-group=0 echo zero`, "0: zero\n1: one\nrc=0"},
	{`srun -N1 -n1 --het-group=0 true : true`, "rc=1\nsrun: fatal: Duplicate het groups in single srun not supported"},
	{
		`srun -N1 -n1 sh -c 'touch up1; until [ -e down1 ]; do sleep 0.05; done' & until [ -e up1 ]; do sleep 0.05; done;` +
			` srun -N3 -n3 --immediate=1 true; touch down1; wait`,
		"rc=0\nsrun: error: Unable to create step for job JOB: Requested nodes are busy",
	},
	{
		`srun -N2 -n2 sh -c 'touch up2; until [ -e down2 ]; do sleep 0.05; done' & until [ -e up2 ]; do sleep 0.05; done;` +
			` srun -N3 -n3 true 2>err & until grep -qs retrying err; do sleep 0.05; done; touch down2; wait; cat err`,
		"rc=0\nsrun: Job JOB step creation temporarily disabled, retrying (Requested nodes are busy)\nsrun: Step created for job JOB",
	},
}

func TestSteps(t *testing.T) {
	t.Parallel()
	const each = 25 // commands of a job; several jobs run at once, because many commands wait
	for i := 0; i < len(stepTests); i += each {
		part := stepTests[i:min(i+each, len(stepTests))]
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			var commands []string
			for _, tt := range part {
				commands = append(commands, tt.command)
			}
			for i, got := range sruns(t, commands...) {
				got = eachTask(stepRE.ReplaceAllString(got, "JOB.STEP"))
				if got != eachTask(part[i].want) {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", part[i].command, got, part[i].want)
				}
			}
		})
	}
}

var tasksRE = regexp.MustCompile(`(?m)^(srun: error: \w+: )tasks ([\d,-]+)(: [A-Z].*)$`)

// eachTask splits messages about several tasks, because their number depends on timing.
func eachTask(lines string) string {
	lines = tasksRE.ReplaceAllStringFunc(lines, func(line string) string {
		m := tasksRE.FindStringSubmatch(line)
		var out []string
		for part := range strings.SplitSeq(m[2], ",") {
			first, last, ranged := strings.Cut(part, "-")
			if !ranged {
				last = first
			}
			from, _ := strconv.Atoi(first)
			to, _ := strconv.Atoi(last)
			for n := from; n <= to; n++ {
				out = append(out, m[1]+"task "+strconv.Itoa(n)+m[3])
			}
		}
		return strings.Join(out, "\n")
	})
	list := strings.Split(lines, "\n")
	sort.Strings(list)
	return strings.Join(list, "\n")
}

func TestBigOutput(t *testing.T) {
	t.Parallel()
	size := 1 << 30
	if testing.Short() || len(raceFlag) > 0 {
		size = 64 << 20
	}
	g := start(t, shape{cpus: []int32{1, 1}, script: fmt.Sprintf(
		"#!/bin/bash\nsrun -w n2 -N1 -n1 sh -c 'head -c %d /dev/zero' | wc -c\n", size)})
	r, out := g.finish()
	if r.Status != 0 || !strings.Contains(out, fmt.Sprint(size)+"\n") {
		t.Errorf("report %+v, output %q", r, out)
	}
	for i, n := range g.nodes {
		peak := peakMemory(n.Process.Pid)
		t.Logf("agent %d: peak %d KiB", i, peak)
		if peak > 200<<10 {
			t.Errorf("agent %d took %d KiB", i, peak)
		}
	}
}

// peakMemory returns the maximum resident size of a process so far, in KiB.
func peakMemory(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.SplitSeq(string(b), "\n") {
		var n int
		if k, _ := fmt.Sscanf(line, "VmHWM: %d", &n); k == 1 {
			return n
		}
	}
	return 0
}

func TestBigInput(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{
			cpus: []int32{1, 1, 1},
			script: "#!/bin/bash\nhead -c 20000000 /dev/zero | srun -N3 -n3 sh -c 'sleep 0.$SLURM_PROCID; wc -c'\n" +
				"yes | srun -N3 -n3 head -n 1\n",
		},
	)
	r, out := g.finish()
	if r.Status != 0 || strings.Count(out, "20000000\n") != 3 || strings.Count(out, "y\n") != 3 {
		t.Errorf("report %+v, output %q", r, out)
	}
}

func TestNodeDies(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{
			cpus:   []int32{1, 1, 1},
			script: "#!/bin/bash\nsrun sh -c 'echo $$ >pid.$SLURM_PROCID; echo go; exec sleep 600'\necho rc=$?\nexit 1\n",
		},
	)
	g.await("go\ngo\ngo\n")
	g.nodes[1].Process.Kill()
	defer g.kill("pid.1") // as the kernel kills the processes of a pod
	r, out := g.finish()
	if r.LostNode != "n2" || r.LostFor <= 0 {
		t.Errorf("report %+v", r)
	}
	for _, line := range []string{"srun: error: Node failure on n2\n", "srun: error: n1: task 0: Terminated\n", "rc=143\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
}

// TestNoKill checks that new steps of a job with --no-kill avoid a lost node, and that a
// step with --no-kill continues without it.
func TestNoKill(t *testing.T) {
	t.Parallel()
	// A lost machine, and a pod that is deleted.
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) { testNoKill(t, sig) })
	}
}

func testNoKill(t *testing.T, sig syscall.Signal) {
	g := start(t, shape{
		cpus: []int32{1, 1, 1},
		job:  func(j *job.Job) { j.Batch.NoKill = true },
		script: "#!/bin/bash\nexec 2>&1\nsrun -k sh -c 'echo $$ >pid.$SLURM_PROCID; echo go; [ $SLURM_PROCID = 1 ] && exec sleep 600; until [ -e on ]; do sleep 0.05; done; echo on'\n" +
			"echo rc=$?\nsrun -N2 -n2 sh -c 'echo then $SLURMD_NODENAME'\nsrun -N3 -n3 true\nsrun -w n2 -N1 -n1 true\n",
	})
	g.await("go\ngo\ngo\n")
	g.nodes[1].Process.Signal(sig)
	if sig == syscall.SIGKILL {
		defer g.kill("pid.1") // as above
	}
	g.await("Node failure on n2")
	if err := os.WriteFile(filepath.Join(g.dir, "on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, out := g.finish()
	for _, line := range []string{"on\non\n", "rc=137\n", "then n1\n", "then n3\n", "srun: error: Only allocated 2 nodes asked for 3\n",
		"Requested node configuration is not available\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
}

// kill kills the process whose pid is in a file of the work directory.
func (g *gang) kill(name string) {
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		g.t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		g.t.Errorf("%s: %v", name, err)
	}
}

func TestHostsFileStays(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Skip("this machine has no /etc/hosts")
	}
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\n"})
	g.finish()
	if after, _ := os.ReadFile("/etc/hosts"); string(after) != string(before) {
		t.Error("the machine's own hosts file was changed")
	}
	if left, _ := filepath.Glob(filepath.Join(g.dir, "core*")); len(left) > 0 {
		t.Error(left)
	}
}
