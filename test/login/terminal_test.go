package login

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/test/tmux"
)

// hostile are texts that control a terminal that receives them unchanged: they set its
// clipboard and title, clear it, and reverse the direction of the following text.
const (
	hostileName    = `\033]52;c;UFdORUQ=\007`
	hostileComment = `\033]2;PWNED\007\033[2J\302\2332J\342\200\256over`
)

// The same texts as the commands show them.
const (
	shownName    = `\x1b]52;c;UFdORUQ=\x07`
	shownComment = `\x1b]2;PWNED\x07\x1b[2J\x9b2J\u202eover`
)

// terminal logs in with OpenSSH's client in a real terminal, uses the terminal UI there, and logs
// out.
func (s *site) terminal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a user whose shell has Debian's settings and no others")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux")
	}
	hostile := strings.TrimSpace(s.run(`sbatch --parsable -H -J "$(printf '` + hostileName + `')" --comment "$(printf '` + hostileComment + `')" --wrap true`))
	s.run("sbatch -H -J harmless --wrap true")
	x := tmux.Open(t, os.Environ(), s.dir, 100, 24, time.Minute, "bash --norc --noprofile")
	part := func(name string, f func(t *testing.T)) {
		if t.Failed() {
			return // each part continues from the previous one
		}
		t.Run(name, func(t *testing.T) { s.t, x.T = t, t; f(t) })
	}
	defer func(was *testing.T) { s.t, x.T = was, t }(s.t)

	var near, far string
	part("login", func(*testing.T) {
		// The quotes make the typed text differ from its output.
		x.Keys("PS1='near''> '", "Enter")
		x.See("near>")
		near = s.stty(x, s.dir)
		s.enter(x)
	})
	part("hostile texts", func(t *testing.T) {
		far = s.stty(x, s.home())
		x.Keys("squeue -h -o '%i|%j|%k|'", "Enter")
		x.See(hostile + "|" + shownName + "|" + shownComment + "|")
		unharmed(t, x)
	})
	part("queue", func(t *testing.T) {
		x.Keys("squeue --tui", "Enter")
		x.See("2 jobs", "harmless", shownName[:8], "!far>")
		if x.Variable("alternate_on") != "1" {
			t.Error("it does not use the alternate screen")
		}
		x.Keys("4")
		x.See("Why it waits")
		unharmed(t, x)
		x.Keys("Escape")
		x.See("2 jobs", "!Why it waits")
	})
	part("keys", func(*testing.T) {
		x.Keys("/harmless", "Enter")
		x.See("/harmless", "!"+shownName[:8])
		x.Keys("C-l")
		x.See("2 jobs", shownName[:8])
	})
	part("clipboard", func(*testing.T) {
		x.Keys("/]52", "Enter")
		x.See("/]52", "!harmless")
		x.Keys("y")
		x.Wait("the job's id on the clipboard", func(string) bool { return x.Clipboard() == hostile })
	})
	part("sizes", func(*testing.T) {
		for _, size := range [][2]int{{140, 40}, {50, 10}, {120, 30}} {
			x.Resize(size[0], size[1])
			x.Wait("a full screen", func(screen string) bool {
				lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
				return len(lines) == size[1] && lines[size[1]-1] != "" && strings.Contains(screen, hostile)
			})
		}
	})
	part("quit", func(t *testing.T) {
		x.Keys("q")
		x.See("far>", "squeue --tui", shownComment) // the earlier contents
		for variable, want := range map[string]string{"alternate_on": "0", "cursor_flag": "1", "mouse_any_flag": "0", "keypad_flag": "0", "keypad_cursor_flag": "0"} {
			if got := x.Variable(variable); got != want {
				t.Errorf("%s=%s is left", variable, got)
			}
		}
		if now := s.stty(x, s.home()); now != far {
			t.Errorf("the far terminal's modes were %s and are %s", far, now)
		}
		x.Keys("stty size", "Enter")
		x.See("30 120")
	})
	part("logout", func(t *testing.T) {
		x.Keys("exit", "Enter")
		x.Wait("the prompt of the start", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "near>") })
		if now := s.stty(x, s.dir); now != near {
			t.Errorf("the near terminal's modes were %s and are %s", near, now)
		}
	})
	part("the terminal executes such texts", func(*testing.T) {
		x.Keys("printf '"+hostileName+`\033]2;PWNED\007'`, "Enter")
		x.Wait("the effect of the texts", func(string) bool { return x.Clipboard() == "PWNED" && x.Variable("pane_title") == "PWNED" })
	})
}

// enter logs in until the message of the day shows the queue: the login node gives squeue two
// seconds, which may not be enough on a busy machine.
func (s *site) enter(x *tmux.Terminal) {
	for {
		x.Keys("clear; ssh "+strings.Join(s.line, " ")+" "+s.user+"@127.0.0.1", "Enter")
		screen := x.Wait("the message of the day", func(screen string) bool {
			return strings.Contains(screen, "gave no answer") || strings.Contains(screen, "JOBID PARTITION") && strings.Contains(screen, "harmless")
		})
		x.Wait("a prompt", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "$") })
		if strings.Contains(screen, "JOBID PARTITION") {
			x.See(shownName[:8]) // as much as fits into squeue's column
			unharmed(x.T, x)
			// Although /etc/profile has overwritten PATH, the commands are in it.
			x.Keys("PS1='far''> '; clear", "Enter")
			x.See("far>", "!JOBID")
			return
		}
		x.Keys("exit", "Enter")
		x.Wait("the prompt of the start", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "near>") })
	}
}

// unharmed: nothing of the hostile texts has reached the terminal.
func unharmed(t *testing.T, x *tmux.Terminal) {
	t.Helper()
	if text, title := x.Clipboard(), x.Variable("pane_title"); text == "PWNED" || title == "PWNED" {
		t.Errorf("the clipboard has %q, the title is %q\n%s", text, title, x.Screen())
	}
}

func (s *site) home() string { return filepath.Join(s.dir, "home") }

// stty returns the modes of the terminal of the shell in x; dir is a directory that the shell
// can write to.
func (s *site) stty(x *tmux.Terminal, dir string) string {
	s.t.Helper()
	name := filepath.Join(dir, "modes")
	x.Keys("stty -g > "+name+".new && mv "+name+".new "+name, "Enter")
	var modes []byte
	x.Wait("the terminal's modes", func(string) bool {
		var err error
		modes, err = os.ReadFile(name)
		return err == nil
	})
	must(s.t, os.Remove(name))
	return string(modes)
}
