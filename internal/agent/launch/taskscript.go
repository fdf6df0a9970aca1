package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// maxPrologOutput is the maximum number of bytes that a task prolog may write.
const maxPrologOutput = 1 << 20

// userEpilogTimeout limits the program of --task-epilog, as in Slurm.
const userEpilogTimeout = 10 * time.Second

// TaskScripts runs the programs before and after a task or the batch script: the
// site's TaskProlog and TaskEpilog, and those of --task-prolog and --task-epilog.
type TaskScripts struct {
	Spawn *spawn.Spawner
	Dir   string // where they run
	// Error writes lines to the job's standard error, Print what a prolog prints
	// to its standard output.
	Error, Print func(text string)
}

// Prolog runs a program before the task. The program's output changes the task's
// environment ("export NAME=value", "unset NAME") or is written to the task's
// output ("print TEXT"). If the code is not 0, the task must not run and ends with
// it. name is the program's name in messages, owner who configured it (slurm or
// user). An empty program does nothing.
func (h *TaskScripts) Prolog(name, owner, program string, environ []string) (changed []string, code int) {
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
		h.Error(fmt.Sprintf("slurmstepd: error: run_command: %s task_prolog can not be executed (%s) %s\n"+
			"slurmstepd: error: %s task_prolog did not exit normally. reason: Run command failed - configuration error\n"+
			"slurmstepd: error: %s failed status=1\n", owner, program, strerror.Text(err), owner, name))
		return environ, 1
	}
	text := make([]byte, 0, 4096)
	for len(text) < maxPrologOutput {
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
		h.Error(fmt.Sprintf("slurmstepd: error: %s failed status=%d\n", name, code))
		return environ, code
	}
	return h.apply(environ, string(text)), 0
}

// apply applies the lines that a prolog printed.
func (h *TaskScripts) apply(environ []string, text string) []string {
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

// Epilog runs a program after the task, and kills it after limit; 0: no limit.
// owner is who configured the program.
func (h *TaskScripts) Epilog(owner, program string, environ []string, limit time.Duration) {
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
		h.Error(fmt.Sprintf("slurmstepd: error: Could not run %s task_epilog [%s]: access denied\n", owner, program))
		h.Error("slurmstepd: error: TaskEpilog failed status=-1\n")
		return
	}
	if limit > 0 {
		kill := time.AfterFunc(limit, func() { p.Signal(syscall.SIGKILL) }) //nolint:errcheck // it may have ended
		defer kill.Stop()
	}
	if status := <-p.Done(); status != 0 {
		h.Error(fmt.Sprintf("slurmstepd: error: TaskEpilog failed status=%d\n", int(status)))
	}
}

// start starts a program that reads nothing and whose standard error is discarded.
func (h *TaskScripts) start(program string, environ []string, out *os.File) (*spawn.Process, error) {
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

// scripts returns the TaskScripts of a task.
func (t *tasks) scripts(k *task) *TaskScripts {
	return &TaskScripts{Spawn: t.node.Spawn, Dir: t.dir, Error: t.notice, Print: func(text string) {
		// The client may be gone.
		_ = t.up.Send(&step.Frame{Type: step.FrameStdout, Task: k.id, Data: []byte(text)})
	}}
}

// prolog runs the task prologs: the site's, then the step's.
func (t *tasks) prolog(k *task, environ []string) (changed []string, code int) {
	if t.launch.Command.Receive != nil {
		return environ, 0 // not a task of the user's
	}
	h := t.scripts(k)
	if environ, code = h.Prolog("TaskProlog", "slurm", t.node.TaskProlog, environ); code != 0 {
		return environ, code
	}
	return h.Prolog("--task-prolog", "user", t.launch.Command.TaskProlog, environ)
}

// epilog runs the task epilogs: the step's, then the site's.
func (t *tasks) epilog(k *task) {
	if t.launch.Command.Receive != nil {
		return
	}
	h := t.scripts(k)
	h.Epilog("user", t.launch.Command.TaskEpilog, k.env, userEpilogTimeout)
	h.Epilog("slurm", t.node.TaskEpilog, k.env, 0)
}
