// Package tmux runs programs of tests in terminals: each is a session of tmux with a
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

// Terminal is a terminal in which a program runs. It is not safe for concurrent use.
type Terminal struct {
	T       *testing.T    // the test that fails; subtests set it to theirs
	Timeout time.Duration // of every wait
	socket  string
	env     []string
}

// Open runs a command in a new terminal of the given size (in cells) and kills it at
// the end of the test. Without tmux it skips the test. The command can set the
// clipboard of the terminal (OSC 52).
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
		_ = x.command("kill-server").Run() // the server is gone if the command has exited
	})
	return x
}

func (x *Terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = x.env
	return cmd
}

// tmux runs a command of tmux and returns its output.
func (x *Terminal) tmux(args ...string) string {
	x.T.Helper()
	text, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.T.Fatalf("tmux %v: %v\n%s", args, err, text)
	}
	return string(text)
}

// Screen returns the text of the terminal.
func (x *Terminal) Screen() string { return x.tmux("capture-pane", "-p") }

// Wait waits until the condition holds for the screen, and returns the screen. what
// describes the condition if it does not hold within Timeout.
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

// Keys presses keys, which have tmux's names.
func (x *Terminal) Keys(keys ...string) {
	x.T.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

// Resize changes the size, which is in cells.
func (x *Terminal) Resize(width, height int) {
	x.T.Helper()
	x.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// Variable returns one of tmux's variables, such as alternate_on or pane_title.
func (x *Terminal) Variable(variable string) string {
	x.T.Helper()
	return strings.TrimSpace(x.tmux("display-message", "-p", "#{"+variable+"}"))
}

// Clipboard returns the text that a program has last copied to the clipboard, or "".
func (x *Terminal) Clipboard() string {
	out, err := x.command("show-buffer").Output()
	if err != nil {
		return "" // for tmux it is an error that there is no buffer
	}
	return string(out)
}

// Ended reports whether the program has exited, and the terminal with it.
func (x *Terminal) Ended() bool { return x.command("has-session").Run() != nil }
