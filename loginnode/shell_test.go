package loginnode_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/loginnode"
)

func TestShellIsALoginShellAndExecReadsBashrc(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	n.must(os.WriteFile(filepath.Join(n.ann().Home, ".bashrc"), []byte("MODULE=loaded\n"), 0o644))
	n.must(os.WriteFile(filepath.Join(n.ann().Home, ".bash_profile"), []byte("PROFILE=read\n"), 0o644))
	if got := n.output(n.ann(), "echo $MODULE $PROFILE"); got != "loaded" {
		t.Errorf("exec: %q", got)
	}
	cmd := n.withInput(n.ssh(n.ann(), "-T"), "echo $0 $PROFILE $MODULE\n")
	if got := n.output2(cmd); got != "-bash read\n" {
		t.Errorf("shell: %q", got)
	}
}

func TestOutputThroughATerminalIsComplete(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	for range 10 {
		cmd := n.ssh(n.ann(), "-tt", "stty -opost; seq 1 20000")
		cmd.Stdin, _ = os.Open(os.DevNull)
		out := n.output2(cmd)
		if lines := strings.Count(out, "\n"); lines != 20000 || !strings.HasSuffix(out, "\n20000\n") {
			t.Fatalf("%d lines, ending in %q", lines, out[max(0, len(out)-20):])
		}
	}
}

func TestBackgroundProcessHoldingOutputDelaysTheEnd(t *testing.T) {
	n := start(t)
	began := time.Now()
	if got := n.output(n.ann(), "(sleep 1; echo late) & echo early"); got != "early\nlate" {
		t.Errorf("%q after %v", got, time.Since(began))
	}
}

func TestMessageOfTheDay(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		file := filepath.Join(filepath.Dir(c.RunDir), "motd")
		if err := os.WriteFile(file, []byte("Welcome\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Session.MOTD.Files = []string{file}
		c.Session.MOTD.Command = []string{"sh", "-c", "echo queue of $USER"}
	})
	c := n.login(n.ann())
	shell := func(tty bool) string {
		s, err := c.NewSession()
		n.must(err)
		defer s.Close()
		var out lockedBuffer
		s.Stdout = &out
		s.Stdin = strings.NewReader("echo; echo the end; exit\n")
		if tty {
			n.must(s.RequestPty("xterm", 24, 80, nil))
		}
		n.must(s.Shell())
		_ = s.Wait()
		return out.String()
	}
	got := shell(true)
	// The terminal may echo the input between the two messages, as it does for a user who types ahead.
	if _, behind, ok := strings.Cut(got, "Welcome\r\n"); !ok || !strings.Contains(behind, "queue of ann\r\n") {
		t.Errorf("interactive: %q", got)
	}
	if got := shell(false); strings.Contains(got, "Welcome") {
		t.Errorf("without a terminal: %q", got)
	}
	if got := run(t, c, "echo x"); got != "x" {
		t.Errorf("exec: %q", got)
	}
	n.must(os.WriteFile(filepath.Join(n.ann().Home, ".hushlogin"), nil, 0o644))
	if got := shell(true); strings.Contains(got, "Welcome") {
		t.Errorf("with .hushlogin: %q", got)
	}
}

// A client that stops reading a command's output, while its input is still open, ends the
// command, as in `ssh login cat file | head`.
func TestUnreadOutputEndsTheCommand(t *testing.T) {
	have(t, "ssh")
	inPod, _ := withPods(t)
	for name, n := range map[string]*node{"here": start(t), "in a pod": inPod} {
		t.Run(name, func(t *testing.T) {
			cmd := n.ssh(n.ann(), "yes; exit 9")
			held, never, err := os.Pipe()
			n.must(err)
			defer held.Close()
			defer never.Close()
			cmd.Stdin = held
			out, err := cmd.StdoutPipe()
			n.must(err)
			n.must(cmd.Start())
			_, err = io.ReadFull(out, make([]byte, 2))
			n.must(err)
			out.Close()
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
				t.Errorf("%v", err)
			}
		})
	}
}
