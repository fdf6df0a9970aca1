package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
)

// siteScripts returns a site with all scripts, each of which records in the job's
// directory that it ran.
func siteScripts(g *gang) *wire.Site {
	note := func(line string) string {
		return "#!/bin/sh\ncd " + g.dir + "\n" + line + "\n"
	}
	return &wire.Site{
		Prolog: note("env > prolog.$SLURMD_NODENAME"),
		Epilog: note("env > epilog.$SLURMD_NODENAME"),
		TaskProlog: note(
			"echo $SLURM_SCRIPT_CONTEXT ${SLURM_STEP_ID-batch} $SLURM_PROCID >> tasks; echo export FROM_SITE=yes; echo print hello; echo unset MARK",
		),
		TaskEpilog: note("echo $SLURM_SCRIPT_CONTEXT ${SLURM_STEP_ID-batch} $SLURM_PROCID >> tasks"),
		SrunProlog: note("echo $SLURM_SCRIPT_CONTEXT $* >> sruns"),
		SrunEpilog: note("echo $SLURM_SCRIPT_CONTEXT $* >> sruns"),
		Timeout:    60,
	}
}

func TestSiteScripts(t *testing.T) {
	t.Parallel()
	g := start(t, shape{
		cpus: []int32{2, 2},
		with: func(g *gang) { g.base.Site = siteScripts(g) },
		script: "#!/bin/bash\nls prolog.n1; echo site=$FROM_SITE mark=$MARK\nsrun -N2 -n2 -l sh -c 'echo $FROM_SITE'\n" +
			"srun -n1 -N1 --prolog=none --epilog=none true\nexit 3\n",
	})
	r, out := g.finish()
	if r.Status != 3 {
		t.Errorf("report %+v", r)
	}
	for _, line := range []string{"hello\n", "prolog.n1\n", "site=yes mark=\n", "0: yes\n", "1: yes\n", "0: hello\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	for _, n := range g.nodes {
		n.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
	}
	waitFor(t, filepath.Join(g.dir, "epilog.n2"), "SLURM_SCRIPT_CONTEXT=epilog_slurmd\n")
	for file, want := range map[string][]string{
		"prolog.n1": {"SLURM_SCRIPT_CONTEXT=prolog_slurmd\n", "SLURM_JOB_ID=" + itoa(g.id) + "\n", "SLURM_JOB_UID=", "SLURM_JOB_USER=", "SLURM_JOB_WORK_DIR=" + g.dir + "\n",
			"SLURM_NODELIST=n[1-2]\n", "SLURM_JOB_PARTITION=debug\n", "SLURM_CLUSTER_NAME=berth\n", "SLURM_JOB_RESTART_COUNT=0\n"},
		"prolog.n2": {"SLURMD_NODENAME=n2\n"},
		"epilog.n1": {"SLURM_JOB_EXIT_CODE2=3:0\n", "SLURM_JOB_EXIT_CODE=768\n", "SLURM_JOB_DERIVED_EC=0\n", "SLURM_SCRIPT_CONTEXT=epilog_slurmd\n"},
		"tasks":     {"prolog_task batch 0\n", "epilog_task batch 0\n", "prolog_task 0 1\n", "epilog_task 0 1\n"},
		"sruns":     {"prolog_srun sh -c echo $FROM_SITE\nepilog_srun sh -c echo $FROM_SITE\n"},
	} {
		text := fileText(t, filepath.Join(g.dir, file))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", file, w, text)
			}
		}
	}
	if text := fileText(t, filepath.Join(g.dir, "sruns")); strings.Count(text, "\n") != 2 {
		t.Errorf("srun --prolog=none ran the site's:\n%s", text)
	}
}

func TestPrologFails(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\ntouch ran\n", with: func(g *gang) {
		g.base.Site = &wire.Site{Prolog: "#!/bin/sh\nexit 3\n", Timeout: 60}
	}})
	if r := g.report(wire.ReportProlog); !strings.Contains(r.Message, "ended with status 3") {
		t.Errorf("report %+v", r)
	}
	g.command(wire.Command{Kind: wire.CommandTerminate, Reason: "REQUEUE"})
	g.finish()
	if _, err := os.Stat(filepath.Join(g.dir, "ran")); err == nil {
		t.Error("the script ran on a node whose prolog had failed")
	}
}

// TestPrologFailsElsewhere checks that after a failed prolog on a node other than the
// batch host, steps are refused there with Slurm's message.
func TestPrologFailsElsewhere(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{
			cpus:   []int32{1, 1},
			script: "#!/bin/sh\nexec 2>&1\nsrun -N1 -n1 -w n2 hostname; echo rc=$?\n",
			with: func(g *gang) {
				g.base.Site = &wire.Site{Prolog: "#!/bin/sh\n[ $SLURMD_NODENAME = n1 ]\n", Timeout: 60}
			},
		},
	)
	g.report(wire.ReportProlog)
	_, out := g.finish()
	for _, line := range []string{"srun: error: Task launch for StepId=" + itoa(g.id) + ".0 failed on node n2: Job prolog failed\n",
		"srun: error: Application launch failed: Job prolog failed\n", "srun: Job step aborted\n", "rc=182\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
}

func TestPrologTimeout(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\n", with: func(g *gang) {
		g.base.Site = &wire.Site{Prolog: "#!/bin/sh\nsleep 600\n", Timeout: 1}
	}})
	if r := g.report(wire.ReportProlog); !strings.Contains(r.Message, "took longer than 1s") {
		t.Errorf("report %+v", r)
	}
	g.command(wire.Command{Kind: wire.CommandTerminate, Reason: "REQUEUE"})
	g.finish()
}

// TestTaskPrologFails checks that a task whose prolog fails is not started and ends with
// the prolog's code.
func TestTaskPrologFails(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{cpus: []int32{1}, script: "#!/bin/sh\nexec 2>&1\nsrun hostname; echo rc=$?\n", with: func(g *gang) {
			g.base.Site = &wire.Site{TaskProlog: "#!/bin/sh\n[ -z \"$SLURM_STEP_ID\" ] || exit 3\n", Timeout: 60}
		}},
	)
	_, out := g.finish()
	if want := "slurmstepd: error: TaskProlog failed status=3\nsrun: error: n1: task 0: Exited with exit code 3\nrc=3\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}
