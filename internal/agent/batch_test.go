package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

func TestBatchRunsScript(t *testing.T) {
	t.Parallel()
	g := start(t, shape{
		cpus: []int32{2},
		args: []string{"a b", "c"},
		env:  []string{"KUBECONFIG=/nowhere"},
		with: func(g *gang) { g.refuse = 2 },
		script: "#!/bin/bash\necho \"args: $1|$2\"; echo \"me: ${0##*/}\"; pwd; echo $MARK $SLURM_JOB_ID $SLURMD_NODENAME $SLURM_NNODES\n" +
			"echo ${PATH%%:*}; echo kube=$KUBECONFIG; cat; echo err >&2; exit 7\n",
	})
	r, out := g.finish()
	if r.Kind != wire.ReportEnded || r.Status != 7 || r.Signal != 0 {
		t.Errorf("report %+v", r)
	}
	want := "args: a b|c\nme: slurm_script\n" + g.dir + "\nsubmitted " + itoa(
		g.id,
	) + " n1 1\n" + binDir + "\nkube=\nerr\n"
	if out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if err := g.nodes[0].Wait(); g.nodes[0].ProcessState.ExitCode() != 7 {
		t.Errorf("agent: %v", err)
	}
	if log := g.logs[0].String(); !strings.HasSuffix(log, want) {
		t.Errorf("container log %q", log)
	}
	var last wire.Report
	b, _ := os.ReadFile(g.termination(0))
	if err := json.Unmarshal(b, &last); err != nil || last.Status != 7 {
		t.Errorf("termination log %q: %v", b, err)
	}
	if left, err := os.ReadDir(g.tmp[0]); err != nil || len(left) > 0 {
		t.Errorf("the agent left %v, %v", left, err)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestBatchFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		shape  shape
		kind   string
		status int32
		signal int32
		output string
	}{
		{"signal", shape{script: "#!/bin/sh\nkill -9 $$\n"}, wire.ReportEnded, 0, 9, ""},
		{"no interpreter", shape{script: "#!/no/such\n"}, wire.ReportEnded, 2, 0,
			"slurmstepd: error: execve(): bad interpreter(/no/such): No such file or directory\n"},
		{
			"no output directory",
			shape{script: "#!/bin/sh\n", job: func(j *job.Job) { j.Batch.Output = "/no/such/x" }},
			wire.ReportFailed,
			0,
			53,
			"",
		},
		{
			"no input",
			shape{script: "#!/bin/sh\n", job: func(j *job.Job) { j.Batch.Input = "/no/such/x" }},
			wire.ReportFailed,
			0,
			53,
			"",
		},
		{
			"background",
			shape{script: "#!/bin/sh\n(trap '' TERM HUP; sleep 600; echo late) & echo done\n"},
			wire.ReportEnded,
			0,
			0,
			"done\n",
		},
		{"daemon", shape{script: "#!/bin/sh\nsetsid sleep 600 & echo done\n"}, wire.ReportEnded, 0, 0, "done\n"},
		{"limits", shape{script: "#!/bin/sh\nulimit -n\nulimit -c\n", job: func(j *job.Job) {
			j.Batch.Rlimits = map[string]uint64{"NOFILE": 77, "CORE": 0}
		}}, wire.ReportEnded, 0, 0, "77\n0\n"},
		{"no limit", shape{script: "#!/bin/sh\nulimit -c\n", job: func(j *job.Job) {
			j.Batch.Rlimits = map[string]uint64{"CORE": 1<<63 - 1}
		}}, wire.ReportEnded, 0, 0, "unlimited\n"},
		{"pid", shape{script: "#!/bin/sh\n[ $SLURM_TASK_PID = $$ ] && echo same\n"}, wire.ReportEnded, 0, 0, "same\n"},
		{
			"umask",
			shape{script: "#!/bin/sh\numask\n", job: func(j *job.Job) { j.Batch.Umask = 0o077 + 1 }},
			wire.ReportEnded,
			0,
			0,
			"0077\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.shape.cpus = []int32{1}
			g := start(t, tt.shape)
			r, out := g.finish()
			if r.Kind != tt.kind || r.Status != tt.status || r.Signal != tt.signal {
				t.Errorf("report %+v", r)
			}
			out = regexp.MustCompile(`\(\S+/slurm_script\)`).ReplaceAllString(out, "")
			if out != tt.output {
				t.Errorf("output %q, want %q", out, tt.output)
			}
		})
	}
}

func TestWorkDirMissing(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "o")
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\npwd\n", job: func(j *job.Job) {
		j.Batch.WorkDir, j.Batch.Output = "/no/such", out
	}})
	if r, _ := g.finish(); r.Status != 0 {
		t.Errorf("report %+v", r)
	}
	b, _ := os.ReadFile(out)
	line := "slurmstepd: error: couldn't chdir to `/no/such': No such file or directory: going to /tmp instead\n"
	if want := line + line + "/tmp\n"; string(b) != want {
		t.Errorf("output %q, want %q", b, want)
	}
}

var (
	stampRE = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	stepRE  = regexp.MustCompile(`JOB\.\d+`)
)

func TestTerminate(t *testing.T) {
	t.Parallel()
	// The shell waits with a builtin that signals interrupt. A program that starts just
	// when the signals are sent would not get one, and the shell would run its trap
	// only after the end of the program.
	g := start(t, shape{
		cpus:   []int32{1, 1},
		script: "#!/bin/bash\ntrap 'echo term' TERM\necho begin\nsrun sh -c \"echo go; exec sleep 600\"\necho after $?\nwhile :; do sleep 600 & wait; done\n",
	})
	g.await("go\ngo\n")
	g.command(wire.Command{Kind: wire.CommandTerminate, Reason: "TIMEOUT"})
	r, out := g.finish()
	out = stampRE.ReplaceAllString(out, "TIME")
	if r.Signal != 9 {
		t.Errorf("report %+v", r)
	}
	for _, line := range []string{
		"slurmstepd: error: *** JOB " + itoa(g.id) + " ON n1 CANCELLED AT TIME DUE TO TIME LIMIT ***\n", "term\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in output:\n%s", line, out)
		}
	}
}

func TestTerminateBySIGTERM(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/bash\necho begin\nsleep 600\n"})
	g.await("begin")
	g.stop()
	r := g.report(wire.ReportEnded)
	if out := stampRE.ReplaceAllString(g.output(), "TIME"); r.Signal != 15 || !r.Stopped ||
		out != "begin\nslurmstepd: error: *** JOB "+itoa(g.id)+" ON n1 CANCELLED AT TIME ***\n" {
		t.Errorf("report %+v, output %q", r, out)
	}
}

// TestTerminateOnce checks that a job is terminated only once, although more requests
// arrive while it ends.
func TestTerminateOnce(t *testing.T) {
	t.Parallel()
	g := start(t, shape{
		cpus:   []int32{1},
		script: "#!/bin/bash\ntrap 'echo term' TERM\necho begin\nwhile :; do sleep 0.05; done\n",
	})
	g.await("begin")
	g.command(wire.Command{Kind: wire.CommandTerminate, Reason: "TIMEOUT"})
	g.await("term")
	g.command(wire.Command{Kind: wire.CommandTerminate, Reason: "CANCELLED"})
	g.stop()
	r := g.report(wire.ReportEnded)
	out := g.output()
	if r.Signal != 9 || strings.Count(out, "CANCELLED AT") != 1 || strings.Count(out, "term\n") != 1 {
		t.Errorf("report %+v, output %q", r, out)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	g := start(t, shape{
		cpus: []int32{1},
		script: "#!/bin/bash\ntrap 'echo shell usr1' USR1\ntrap 'echo shell usr2' USR2\n" +
			"srun bash -c 'trap \"echo step usr1\" USR1; trap \"echo step usr2; exit 0\" USR2; echo ready; while :; do sleep 0.05; done' &\n" +
			"wait; wait; wait; wait; echo end\n",
	})
	g.await("ready")
	g.command(wire.Command{Kind: wire.CommandSignal, Signal: 10})
	g.await("step usr1")
	if strings.Contains(g.output(), "shell usr1") {
		t.Error("a step's signal reached the shell")
	}
	g.command(wire.Command{Kind: wire.CommandSignal, Signal: 10, Batch: true})
	g.await("shell usr1")
	if strings.Count(g.output(), "step usr1") != 1 {
		t.Error("the shell's signal reached the step")
	}
	g.command(wire.Command{Kind: wire.CommandSignal, Signal: 12, Full: true})
	_, out := g.finish()
	for _, w := range []string{"shell usr2", "step usr2", "end"} {
		if !strings.Contains(out, w) {
			t.Errorf("no %q in %q", w, out)
		}
	}
}

// TestLoginEnvironment checks the environment of jobs that request that of a login shell.
func TestLoginEnvironment(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(home, ".profile"),
		[]byte("echo noise\nexport FROM_PROFILE='two\nlines' MARK=profile\n"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		option string
		env    []string
		want   string
	}{
		"not requested": {"", nil, ":submitted\n"},
		"option":        {"0", nil, "two\nlines:submitted\n"},
		"export":        {"", []string{"SLURM_GET_USER_ENV=1"}, "two\nlines:submitted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, shape{
				cpus: []int32{1}, env: tt.env, script: "#!/bin/sh\necho \"$FROM_PROFILE:$MARK\"\n",
				with: func(g *gang) { g.base.Home, g.base.Shell = home, "/bin/bash" },
				job: func(j *job.Job) {
					if tt.option != "" {
						j.Options = map[string]string{"get-user-env": tt.option}
					}
				},
			})
			if _, out := g.finish(); out != tt.want {
				t.Errorf("output %q, want %q", out, tt.want)
			}
		})
	}
}
