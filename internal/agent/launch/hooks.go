package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// maxHook bounds what a task's prolog may write.
const maxHook = 1 << 20

// Hook runs the programs around a task, or the batch script: the site's, and
// those that --task-prolog and --task-epilog name.
type Hook struct {
	Spawn *spawn.Spawner
	Dir   string // where they run
	// Say takes lines for the job's standard error, Print what a prolog says
	// for the standard output.
	Say, Print func(text string)
}

// Prolog runs a program before the task. What it prints changes the task's
// environment ("export NAME=value", "unset NAME") or goes to its output
// ("print TEXT"). A code that is not 0 is the task's end. name is what messages
// call it, whose who asked for it; an empty program is none.
func (h *Hook) Prolog(name, whose, program string, environ []string) (changed []string, code int) {
	if program == "" {
		return environ, 0
	}
	r, w, err := os.Pipe()
	if err != nil {
		return environ, 0
	}
	defer r.Close()
	p, err := h.start(program, env.Merge(environ, "SLURM_SCRIPT_CONTEXT=prolog_task"), w)
	w.Close()
	if err != nil {
		h.Say(fmt.Sprintf("slurmstepd: error: run_command: %s task_prolog can not be executed (%s) %s\n"+
			"slurmstepd: error: %s task_prolog did not exit normally. reason: Run command failed - configuration error\n"+
			"slurmstepd: error: %s failed status=1\n", whose, program, strerror.Text(err), whose, name))
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
		code := step.ExitCode(uint32(status))
		h.Say(fmt.Sprintf("slurmstepd: error: %s failed status=%d\n", name, code))
		return environ, code
	}
	return h.obey(environ, string(text)), 0
}

func (h *Hook) obey(environ []string, text string) []string {
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
			h.Print(rest + "\n")
		}
	}
	return environ
}

// Epilog runs a program after the task; kind says whose it is.
func (h *Hook) Epilog(kind, program string, environ []string) {
	if program == "" {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	p, err := h.start(program, env.Merge(environ, "SLURM_SCRIPT_CONTEXT=epilog_task"), null)
	if err != nil {
		h.Say(fmt.Sprintf("slurmstepd: error: Could not run %s task_epilog [%s]: access denied\n", kind, program))
		h.Say("slurmstepd: error: TaskEpilog failed status=-1\n")
		return
	}
	if status := <-p.Done(); status != 0 {
		h.Say(fmt.Sprintf("slurmstepd: error: TaskEpilog failed status=%d\n", int(status)))
	}
}

func (h *Hook) start(program string, environ []string, out *os.File) (*spawn.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	path, _ := spawn.Find(program, h.Dir, environ)
	if path == "" {
		return nil, syscall.ENOENT
	}
	return h.Spawn.Start(&spawn.Spec{
		Path: path, Args: []string{program}, Env: environ, Dir: h.Dir, Files: []*os.File{null, out, null}, Umask: -1,
	})
}

// hook is the Hook of a task.
func (t *tasks) hook(k *task) *Hook {
	return &Hook{Spawn: t.node.Spawn, Dir: t.dir, Say: t.notice, Print: func(text string) {
		t.up.Send(&step.Frame{Type: step.FrameStdout, Task: k.id, Data: []byte(text)}) //nolint:errcheck // then nobody listens
	}}
}

// prolog runs what comes before a task: the site's, then the step's.
func (t *tasks) prolog(k *task, environ []string) (changed []string, code int) {
	if t.launch.Command.Receive != nil {
		return environ, 0 // no task of the user's
	}
	h := t.hook(k)
	if environ, code = h.Prolog("TaskProlog", "slurm", t.node.TaskProlog, environ); code != 0 {
		return environ, code
	}
	return h.Prolog("--task-prolog", "user", t.launch.Command.TaskProlog, environ)
}

// epilog runs what comes after a task: the step's, then the site's.
func (t *tasks) epilog(k *task) {
	if t.launch.Command.Receive != nil {
		return
	}
	h := t.hook(k)
	h.Epilog("user", t.launch.Command.TaskEpilog, k.env)
	h.Epilog("slurm", t.node.TaskEpilog, k.env)
}
