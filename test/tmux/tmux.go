// Package tmux gives tests real terminals: each is a session of tmux with a
// server of its own.
package tmux

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Terminal is a terminal in which a program runs. It is for one goroutine.
type Terminal struct {
	T       *testing.T    // the test that fails; tests with parts change it in each
	Timeout time.Duration // of every wait
	socket  string
	env     []string
}

// Open runs a command in a new terminal of that size (cells) and ends it with
// the test; without tmux it skips the test. Programs in it can set its
// clipboard (OSC 52).
func Open(t *testing.T, env []string, dir string, width, height int, timeout time.Duration, command string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux")
	}
	x := &Terminal{
		T: t, Timeout: timeout, socket: filepath.Join(t.TempDir(), "tmux"),
		env: append(env, "TERM=xterm-256color"),
	}
	x.tmux("new-session", "-d", "-c", dir, "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), command,
		";", "set-option", "-s", "set-clipboard", "on")
	t.Cleanup(func() {
		// It does not exist any more if the program has exited.
		_ = x.command("kill-server").Run()
	})
	return x
}

func (x *Terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = x.env
	return cmd
}

// tmux runs a command of tmux; out is what it prints.
func (x *Terminal) tmux(args ...string) (out string) {
	x.T.Helper()
	text, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.T.Fatalf("tmux %v: %v\n%s", args, err, text)
	}
	return string(text)
}

// Screen returns the text of the terminal.
func (x *Terminal) Screen() string { return x.tmux("capture-pane", "-p") }

// Wait waits until the screen satisfies the condition, and returns it.
func (x *Terminal) Wait(what string, holds func(screen string) bool) string {
	x.T.Helper()
	end := time.Now().Add(x.Timeout)
	for {
		screen := x.Screen()
		if holds(screen) {
			return screen
		}
		if time.Now().After(end) {
			x.T.Fatalf("not within %v: %s; the terminal shows\n%s", x.Timeout, what, screen)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// See waits until the terminal shows all of the texts, and none of those after a "!".
func (x *Terminal) See(texts ...string) string {
	x.T.Helper()
	return x.Wait(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			absent, not := strings.CutPrefix(text, "!")
			if not == strings.Contains(screen, absent) {
				return false
			}
		}
		return true
	})
}

// Keys presses keys, by tmux's names.
func (x *Terminal) Keys(keys ...string) {
	x.T.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

// Resize changes the size, in cells.
func (x *Terminal) Resize(width, height int) {
	x.T.Helper()
	x.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// Is reads one of tmux's variables, such as alternate_on or pane_title.
func (x *Terminal) Is(variable string) string {
	x.T.Helper()
	return strings.TrimSpace(x.tmux("display-message", "-p", "#{"+variable+"}"))
}

// Clipboard returns what a program has last copied to the clipboard; empty: nothing.
func (x *Terminal) Clipboard() string {
	out, err := x.command("show-buffer").Output()
	if err != nil {
		return "" // tmux has no empty buffers, but an error where there is none
	}
	return string(out)
}

// Ended reports whether the program has exited, and the terminal with it.
func (x *Terminal) Ended() bool { return x.command("has-session").Run() != nil }
