package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// terminal is a real one: a session of tmux with a server of its own.
type terminal struct {
	t      *testing.T
	socket string
	env    []string
}

// tmux runs a command of tmux; out is what it prints.
func (x *terminal) tmux(args ...string) (out string) {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = x.env
	text, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, text)
	}
	return string(text)
}

// open runs a command in a new terminal of that size.
func open(t *testing.T, env []string, dir string, width, height int, command string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux")
	}
	x := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux"), env: append(env, "TERM=xterm-256color")}
	x.tmux("new-session", "-d", "-c", dir, "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), command)
	t.Cleanup(func() {
		// It is gone already where the program has ended.
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
	})
	return x
}

// screen is what the terminal shows.
func (x *terminal) screen() string { return x.tmux("capture-pane", "-p") }

// see waits until the terminal shows all of the texts, and none with ! before.
func (x *terminal) see(texts ...string) string {
	x.t.Helper()
	end := time.Now().Add(patience)
	for {
		screen := x.screen()
		ok := true
		for _, text := range texts {
			if absent, not := strings.CutPrefix(text, "!"); not {
				ok = ok && !strings.Contains(screen, absent)
			} else {
				ok = ok && strings.Contains(screen, text)
			}
		}
		if ok {
			return screen
		}
		if time.Now().After(end) {
			x.t.Fatalf("%q did not come; the terminal shows\n%s", texts, screen)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// keys presses keys, by tmux's names.
func (x *terminal) keys(keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

func (x *terminal) resize(width, height int) {
	x.t.Helper()
	x.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// TestTerminal uses the queue in a real terminal, as a user does.
func TestTerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux")
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
	first := sbatch("-N2", "--exclusive", "-t30", "-Jfirst", "--wrap", "for i in $(seq 100000); do echo line $i; sleep 0.2; done")
	next := sbatch("-N1", "-t5", "-Jnext", "--wrap", "true")
	held := sbatch("-H", "-Jheld", "--wrap", "true")
	sbatch("-a", "0-9", "-Jsweep", "-t5", "--wrap", "true")

	x := open(t, env, dir, 100, 24, "squeue --tui")
	x.see("n[1-2]", "(Resources)", "(JobHeldUser)", "[0-9]", "4 jobs")
	t.Run("why", func(t *testing.T) {
		x.t = t
		x.keys("/next", "Enter")
		x.see("/next", "!held")
		x.keys("4")
		x.see("Why it waits", first+" holds n[1-2] until", "It should start at")
		x.keys("Escape")
		x.see("/next", "!Why it waits") // Escape and a key at once would be one key with Alt
		x.keys("C-l")
		x.see("4 jobs")
	})
	t.Run("output", func(t *testing.T) {
		x.t = t
		x.keys("/first", "Enter", "o")
		x.see("[following]", "line 3")
		x.keys("Up")
		x.see("!following")
		x.keys("q", "C-l")
		x.see("4 jobs")
	})
	t.Run("pages", func(t *testing.T) {
		x.t = t
		x.keys("2")
		x.see("allocated", "2/2")
		x.keys("7")
		x.see("timeline", "planned")
		x.keys("?")
		x.see("everything about the job")
		x.keys("1")
		x.see("4 jobs")
	})
	t.Run("sizes", func(t *testing.T) {
		x.t = t
		x.keys("g") // onto the first line, which every size shows
		for _, size := range [][2]int{{40, 12}, {20, 4}, {30, 1}, {200, 60}, {100, 24}} {
			x.resize(size[0], size[1])
			x.see(next)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		x.t = t
		x.keys("/held", "Enter", "x")
		x.see("Cancel 1 job?", "jobs:   "+held)
		x.keys("y")
		x.see("1 job cancelled.")
		x.keys("C-l")
		x.see("!held", "3 jobs")
	})
	t.Run("changes come by themselves", func(t *testing.T) {
		x.t = t
		id := sbatch("-H", "-Jlate", "--wrap", "true")
		x.see(id, "late", "4 jobs")
	})
	t.Run("leave", func(t *testing.T) {
		x.t = t
		x.keys("q")
		end := time.Now().Add(patience)
		for exec.Command("tmux", "-S", x.socket, "has-session").Run() == nil {
			if time.Now().After(end) {
				t.Fatalf("it has not ended:\n%s", x.screen())
			}
			time.Sleep(50 * time.Millisecond)
		}
		if _, err := os.Stat(filepath.Join(dir, ".local/state/berth/tui.json")); err != nil {
			t.Error(err)
		}
	})
	t.Run("plain", func(t *testing.T) {
		x := open(t, env, dir, 80, 24, "sview --plain")
		x.see("PENDING")
		x.keys("job "+next, "Enter")
		x.see("It should start at")
		x.keys("quit", "Enter")
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
