// Package spawn starts and reaps processes for the agent, which is pid 1 of
// its pod or a subreaper: every child and every orphan of the job becomes its
// child sooner or later. It waits for all of them in one place: who starts a
// process by os/exec beside it may find that its end is gone (ECHILD).
package spawn

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Spawner starts processes and hands out their ends. It is safe for
// concurrent use.
type Spawner struct {
	mu   sync.Mutex // held over fork, so that no child is reaped before it is known
	live map[int]*Process

	sessions sessions
}

// New makes the process's one Spawner and begins to reap. It makes the process
// a subreaper, if it is not pid 1 anyway.
func New() (*Spawner, error) {
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("become subreaper: %w", err)
		}
	}
	s := &Spawner{live: map[int]*Process{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			s.reap()
		}
	}()
	return s, nil
}

// reap collects every child that has ended.
func (s *Spawner) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if p, ok := s.live[pid]; ok {
			delete(s.live, pid)
			p.used = used
			p.done <- status
		}
	}
}

// Knows reports whether pid was started here and has not ended.
func (s *Spawner) Knows(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[pid] != nil
}

// umask is this process's, which setting it anew is the only way to know; so
// it is remembered, and SetUmask must be used to change it.
func umask() int { return int(current.Load()) }

var current atomic.Int32

// SetUmask sets the umask of the process, and so of what it starts.
func SetUmask(mask int) {
	syscall.Umask(mask)
	current.Store(int32(mask))
}

// Process is a started process. It leads a session of its own.
type Process struct {
	PID  int
	done chan syscall.WaitStatus
	used syscall.Rusage // set before done delivers
}

// Used is what the process and the children that it waited for have used. It
// may be called once Done has delivered.
func (p *Process) Used() *syscall.Rusage { return &p.used }

// Ended is a process that never ran: its end is status.
func Ended(status syscall.WaitStatus) *Process {
	p := &Process{PID: -1, done: make(chan syscall.WaitStatus, 1)}
	p.done <- status
	return p
}

// Done delivers the wait status once.
func (p *Process) Done() <-chan syscall.WaitStatus { return p.done }

// Signal sends sig to the process's group.
func (p *Process) Signal(sig syscall.Signal) error { return syscall.Kill(-p.PID, sig) }

// Spec says what to run. Files are the process's descriptors 0, 1, 2, ...
type Spec struct {
	Path  string // absolute, or relative to Dir
	Args  []string
	Env   []string
	Dir   string
	Files []*os.File
	CPUs  *unix.CPUSet // nil: those of the agent
	// Memory is where the process takes its memory from; nil: as the agent.
	Memory *MemPolicy
	// Rlimits: name without RLIMIT_ -> soft limit. Umask is the bits to clear;
	// negative: the agent's. NeedPID sets SLURM_TASK_PID. For any of these the
	// program Helper is started first (see Exec), which costs a few ms.
	Rlimits map[string]uint64
	Umask   int
	NeedPID bool
	Helper  string
	// Terminal makes descriptor 0 the controlling terminal.
	Terminal bool
}

// MemPolicy is where a process takes its memory from: the NUMA nodes named and
// no others, or, if possible, the first of them.
type MemPolicy struct {
	Prefer bool
	Nodes  []int
}

func (p *MemPolicy) set() error {
	var nodes unix.CPUSet // a set of bits, whatever they stand for
	for _, n := range p.Nodes {
		nodes.Set(n)
	}
	mode := unix.MPOL_BIND
	if p.Prefer {
		mode = unix.MPOL_PREFERRED
	}
	return unix.SetMemPolicy(mode, &nodes)
}

// PolicyError means that the kernel refused a MemPolicy; nothing was started.
type PolicyError struct{ Err error }

func (e *PolicyError) Error() string { return "set_mempolicy: " + e.Err.Error() }

// Unwrap gives the kernel's error.
func (e *PolicyError) Unwrap() error { return e.Err }

// Start runs a process as the leader of a new session. The error is a
// syscall.Errno of execve where that failed.
func (s *Spawner) Start(spec *Spec) (*Process, error) {
	path, args := spec.Path, spec.Args
	if spec.Helper != "" && (len(spec.Rlimits) > 0 || spec.NeedPID || (spec.Umask >= 0 && spec.Umask != umask())) {
		path, args = spec.Helper, helperArgs(spec)
	}
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: spec.Terminal}}
	for _, f := range spec.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if spec.CPUs != nil {
		// The child inherits the mask of the thread that forks.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var old unix.CPUSet
		if unix.SchedGetaffinity(0, &old) == nil && unix.SchedSetaffinity(0, spec.CPUs) == nil {
			defer unix.SchedSetaffinity(0, &old) //nolint:errcheck // the mask it had
		}
	}
	if spec.Memory != nil {
		// As the mask.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := spec.Memory.set(); err != nil {
			return nil, &PolicyError{err}
		}
		defer unix.SetMemPolicy(unix.MPOL_DEFAULT, nil) //nolint:errcheck // the agent has no other
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(path, args, attr)
	runtime.KeepAlive(spec)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, done: make(chan syscall.WaitStatus, 1)}
	s.live[pid] = p
	return p, nil
}
