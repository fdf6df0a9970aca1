// Package spawn starts and reaps processes for the agent, which is pid 1 of its pod
// or a subreaper, so that orphans of the job become its children. All children are
// reaped in one place: a process that is started with os/exec may already have been
// reaped when os/exec waits for it (ECHILD).
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

// Spawner starts processes and delivers their wait statuses. It is safe for concurrent
// use.
type Spawner struct {
	mu   sync.Mutex // held during fork, so that no child is reaped before it is in live
	live map[int]*Process

	sessions sessions
}

// New returns the Spawner of this process, of which there must be only one, and starts
// reaping its children. It makes the process a subreaper unless it is pid 1.
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

// reap reaps every child that has ended.
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

// Knows reports whether pid was started by s and was not reaped.
func (s *Spawner) Knows(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[pid] != nil
}

// umask returns the umask of this process. It is stored in a variable, because the system's
// can be read only by changing it. Therefore only SetUmask may change it.
func umask() int { return int(current.Load()) }

var current atomic.Int32

// SetUmask sets the umask of this process, which its children inherit.
func SetUmask(mask int) {
	syscall.Umask(mask)
	current.Store(int32(mask))
}

// Process is a started process, the leader of its own session.
type Process struct {
	PID  int
	done chan syscall.WaitStatus
	used syscall.Rusage // set before done delivers
}

// Used returns the usage of the process and of the children for which it waited. It may be
// called after Done has delivered.
func (p *Process) Used() *syscall.Rusage { return &p.used }

// Ended returns a process that never ran and has the given wait status.
func Ended(status syscall.WaitStatus) *Process {
	p := &Process{PID: -1, done: make(chan syscall.WaitStatus, 1)}
	p.done <- status
	return p
}

// Done delivers the wait status once.
func (p *Process) Done() <-chan syscall.WaitStatus { return p.done }

// Signal sends sig to the process group.
func (p *Process) Signal(sig syscall.Signal) error { return syscall.Kill(-p.PID, sig) }

// Spec describes a process to start. Files are its descriptors 0, 1, 2, ...
type Spec struct {
	Path  string // absolute, or relative to Dir
	Args  []string
	Env   []string
	Dir   string
	Files []*os.File
	CPUs  *unix.CPUSet // nil: those of the agent
	// Memory is the memory policy of the process; nil: as the agent.
	Memory *MemPolicy
	// Rlimits maps a limit's name, without RLIMIT_, to the soft limit. A negative
	// Umask means the agent's. NeedPID sets SLURM_TASK_PID. For any of these, the
	// program Helper is started first (see Exec), which takes a few milliseconds.
	Rlimits map[string]uint64
	Umask   int
	NeedPID bool
	Helper  string
	// Terminal makes descriptor 0 the controlling terminal.
	Terminal bool
}

// MemPolicy restricts the memory of a process to NUMA nodes, or makes it prefer the
// first of them.
type MemPolicy struct {
	Prefer bool
	Nodes  []int
}

// set sets the policy of the calling thread.
func (p *MemPolicy) set() error {
	var nodes unix.CPUSet // used as a set of NUMA nodes
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

// Unwrap returns the kernel's error.
func (e *PolicyError) Unwrap() error { return e.Err }

// Start starts a process as the leader of a new session. If execve fails, the error is
// its syscall.Errno.
func (s *Spawner) Start(spec *Spec) (*Process, error) {
	path, args := spec.Path, spec.Args
	otherUmask := spec.Umask >= 0 && spec.Umask != umask()
	if spec.Helper != "" && (len(spec.Rlimits) > 0 || spec.NeedPID || otherUmask) {
		path, args = spec.Helper, helperArgs(spec)
	}
	attr := &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: spec.Terminal},
	}
	for _, f := range spec.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if spec.CPUs != nil {
		// The child inherits the mask of the thread that forks.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var old unix.CPUSet
		if unix.SchedGetaffinity(0, &old) == nil && unix.SchedSetaffinity(0, spec.CPUs) == nil {
			defer unix.SchedSetaffinity(0, &old) //nolint:errcheck // restores the previous mask
		}
	}
	if spec.Memory != nil {
		// The child inherits the policy of the thread that forks.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := spec.Memory.set(); err != nil {
			return nil, &PolicyError{err}
		}
		defer unix.SetMemPolicy(unix.MPOL_DEFAULT, nil) //nolint:errcheck // the agent has the default policy
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
