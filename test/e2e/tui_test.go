package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/test/tmux"
)

// TestTerminal uses the queue in a real terminal, as a user does.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux") // before a cluster is started for it
	}
	c := start(t, "--nodes", "2", "--cpus", "2")
	dir, err := os.MkdirTemp("", "berth-tui-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	env := c.environ(dir)
	sbatch := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.bin, "sbatch"), append([]string{"--parsable"}, args...)...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("sbatch %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	first := sbatch("-N2", "--exclusive", "-t30", "-Jfirst", "--wrap",
		"srun -n2 sh -c 'while sleep 0.5; do echo task $SLURM_PROCID writes; done' >tasks.out & for i in $(seq 100000); do echo line $i; sleep 0.2; done")
	next := sbatch("-N1", "-t5", "-Jnext", "--wrap", "true")
	held := sbatch("-H", "-Jheld", "--wrap", "true")
	sbatch("-a", "0-9", "-Jsweep", "-t5", "--wrap", "true")

	scontrol := func(args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.bin, "scontrol"), args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("scontrol %v: %v\n%s", args, err, out)
		}
	}

	x := tmux.Open(t, env, dir, 100, 24, eventually.Timeout, "squeue --tui")
	x.See("n[1-2]", "(Resources)", "(JobHeldUser)", "[0-9]", "4 jobs")
	t.Run("why", func(t *testing.T) {
		x.T = t
		x.Keys("/next", "Enter")
		x.See("/next", "!held")
		x.Keys("4")
		x.See("Why it waits", first+" has n[1-2] until", "It should start at")
		x.Keys("Escape")
		x.See("/next", "!Why it waits") // Escape and a key at once would be one key with Alt
		x.Keys("C-l")
		x.See("4 jobs")
	})
	t.Run("output", func(t *testing.T) {
		x.T = t
		x.Keys("/first", "Enter", "o")
		x.See("[following]", "line 3")
		x.Keys("Up")
		x.See("!following")
		x.Keys("q", "C-l")
		x.See("4 jobs")
	})
	t.Run("output of tasks", func(t *testing.T) {
		x.T = t
		x.Keys("/first", "Enter", "o")
		x.See("[following]", "line 3")
		x.Keys("i")
		x.See("the file as the job's first node has it", "2 tasks, from now on")
		x.Keys("Down", "Down", "Enter")
		x.See("[from its agent]", "line 3")
		x.Keys("i")
		x.See("2 tasks, from now on")
		x.Keys("Down", "Down", "Down", "Enter")
		x.See("step 0 2 tasks", "0: task 0 writes", "1: task 1 writes")
		x.Keys("i")
		x.See("2 tasks, from now on")
		x.Keys("Down", "Down", "Down", "Down", "Down", "Enter")
		x.See("task 1 of 2", "task 1 writes", "!task 0")
		x.Keys("q", "C-l")
		x.See("4 jobs")
	})
	t.Run("clipboard", func(t *testing.T) {
		x.T = t
		x.Keys("/held", "Enter")
		x.See("/held", "!first")
		x.Keys("y")
		x.Wait("the job's id on the clipboard", func(string) bool { return x.Clipboard() == held })
		x.Keys("C-l")
		x.See("4 jobs")
	})
	t.Run("shell", func(t *testing.T) {
		x.T = t
		x.Keys("/first", "Enter")
		x.See("/first", "!held")
		x.Keys("!")
		x.Wait("a prompt", func(screen string) bool {
			screen = strings.TrimSpace(screen)
			return strings.HasSuffix(screen, "#") || strings.HasSuffix(screen, "$")
		})
		x.Keys("echo I am $SLURM_JOB_ID on $SLURMD_NODENAME", "Enter")
		x.See("I am "+first+" on n1", "!(Resources)")
		x.Keys("exit", "Enter")
		x.See("/first", "!I am")
		x.Keys("C-l")
		x.See("4 jobs", "held")
	})
	t.Run("pages", func(t *testing.T) {
		x.T = t
		x.Keys("2")
		x.See("allocated", "2/2", "allocated 2")
		scontrol("update", "nodename=n2", "state=drain", "reason=disk")
		x.See("draining", "disk") // without a key
		scontrol("update", "nodename=n2", "state=resume")
		x.See("!draining")
		x.Keys("7")
		x.See("timeline", "planned")
		x.Keys("?")
		x.See("everything about the job")
		x.Keys("1")
		x.See("4 jobs")
	})
	t.Run("sizes", func(t *testing.T) {
		x.T = t
		x.Keys("g") // onto the first line, which every size shows
		for _, size := range [][2]int{{40, 12}, {20, 4}, {30, 1}, {200, 60}, {100, 24}} {
			x.Resize(size[0], size[1])
			x.See(next)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		x.T = t
		x.Keys("/held", "Enter", "x")
		x.See("Cancel 1 job?", "jobs:   "+held)
		x.Keys("y")
		x.See("1 job cancelled.")
		x.Keys("C-l")
		x.See("!held", "3 jobs")
	})
	t.Run("changes appear without a key", func(t *testing.T) {
		x.T = t
		id := sbatch("-H", "-Jlate", "--wrap", "true")
		x.See(id, "late", "4 jobs")
	})
	t.Run("quit", func(t *testing.T) {
		x.T = t
		x.Keys("q")
		eventually.Holds(t, "the program ends", x.Ended)
		if _, err := os.Stat(filepath.Join(dir, ".local/state/berth/tui.json")); err != nil {
			t.Error(err)
		}
	})
	t.Run("plain", func(t *testing.T) {
		x := tmux.Open(t, env, dir, 80, 24, eventually.Timeout, "sview --plain")
		x.See("PENDING")
		x.Keys("job "+next, "Enter")
		x.See("It should start at")
		x.Keys("quit", "Enter")
	})
	t.Run("no terminal", func(t *testing.T) {
		for _, args := range [][]string{{"squeue", "--tui", "-h", "-o", "%i %j"}, {"berth", "tui", "-h", "-o", "%i %j"}, {"sview", "--read-only", "-h", "-o", "%i %j"}} {
			cmd := exec.Command(filepath.Join(c.bin, args[0]), args[1:]...)
			cmd.Env = env
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), next+" next\n") {
				t.Errorf("%v: %v: %s", args, err, out)
			}
		}
	})
}
