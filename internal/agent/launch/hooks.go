package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// maxHook bounds what a --task-prolog may write.
const maxHook = 1 << 20

// prolog runs --task-prolog for a task. What it prints changes the task's
// environment ("export NAME=value", "unset NAME") or goes to its output
// ("print TEXT"). A code that is not 0 is the task's end.
func (t *tasks) prolog(k *task, environ []string) (changed []string, code int) {
	name := t.launch.Command.TaskProlog
	if name == "" {
		return environ, 0
	}
	r, w, err := os.Pipe()
	if err != nil {
		return environ, 0
	}
	defer r.Close()
	p, err := t.hook(name, environ, w)
	w.Close()
	if err != nil {
		t.notice(fmt.Sprintf("slurmstepd: error: --task-prolog %s: %s\n", name, spawn.Text(err)))
		return environ, 1
	}
	text := make([]byte, 0, 4096)
	for len(text) < maxHook {
		n, err := r.Read(text[len(text):cap(text)])
		if text = text[:len(text)+n]; err != nil {
			break
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
	if status := <-p.Done(); status != 0 {
		code := status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		t.notice(fmt.Sprintf("slurmstepd: error: --task-prolog failed status=%d\n", code))
		return environ, code
	}
	return t.obeyProlog(k, environ, string(text)), 0
}

func (t *tasks) obeyProlog(k *task, environ []string, text string) []string {
	for line := range strings.SplitSeq(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "export":
			if strings.Contains(rest, "=") {
				environ = env.Merge(environ, rest)
			}
		case "unset":
			environ = env.Without(environ, func(name string) bool { return name == rest })
		case "print":
			t.up.Send(&step.Frame{Type: step.FrameStdout, Task: k.id, Data: []byte(rest + "\n")}) //nolint:errcheck // then nobody listens
		}
	}
	return environ
}

// epilog runs --task-epilog for a task that has ended.
func (t *tasks) epilog(environ []string) {
	name := t.launch.Command.TaskEpilog
	if name == "" {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	p, err := t.hook(name, environ, null)
	if err != nil {
		t.notice(fmt.Sprintf("slurmstepd: error: --task-epilog %s: %s\n", name, spawn.Text(err)))
		return
	}
	if status := <-p.Done(); status != 0 {
		t.notice(fmt.Sprintf("slurmstepd: error: TaskEpilog failed status=%d\n", int(status)))
	}
}

// hook starts a program of the user's beside a task.
func (t *tasks) hook(name string, environ []string, out *os.File) (*spawn.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	path, _ := spawn.Find(name, t.dir, environ)
	if path == "" {
		return nil, syscall.ENOENT
	}
	return t.node.Spawn.Start(&spawn.Spec{
		Path: path, Args: []string{name}, Env: environ, Dir: t.dir, Files: []*os.File{null, out, null}, Umask: -1,
	})
}
