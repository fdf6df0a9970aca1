// Package task starts containers as processes of this machine, through the shim, and
// waits for their end. It does not depend on Kubernetes.
package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/shim"
)

// Options are the options of a container's process.
type Options struct {
	Spec      shim.Spec
	Isolation Isolation
	Net       *os.File       // network namespace to enter; nil: this one
	Cgroup    *cgroups.Group // nil: none
	// Stdin, Stdout and Stderr are the streams of the process; nil: /dev/null. The caller
	// closes them.
	Stdin, Stdout, Stderr *os.File
	TTY                   bool // Stdin is a terminal: make it the controlling one
}

// Result is how a process ended.
type Result struct {
	Code     int // exit code; 128 + Signal if a signal ended it
	Signal   syscall.Signal
	Finished time.Time
}

// Task is a started container.
type Task struct {
	Pid     int
	Started time.Time

	options Options
	cmd     *exec.Cmd
	done    chan struct{}
	result  Result
}

// StartError is the error for a command that could not be started because of the pod, not of
// the node.
type StartError struct{ Text string }

func (e *StartError) Error() string { return e.Text }

// Start starts a container and returns when its command runs. All of its processes die
// with this process.
func Start(o Options) (*Task, error) {
	o.Spec.DieWithParent = true
	o.Spec.Proc = o.Isolation.Namespaces
	cmd := exec.Command("/proc/self/exe", shim.Arg)
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if o.TTY {
		attr.Setctty, attr.Ctty = true, 0
	}
	o.Isolation.apply(attr)
	cmd.SysProcAttr = attr
	if o.Net != nil {
		o.Spec.EnterNet = true
	}
	return launch(cmd, o, func(pid int) error { return o.Cgroup.Add(pid) })
}

// launch starts a shim with cmd, moves it to its cgroup with join, sends it its Spec, and
// waits until it has executed the command.
func launch(cmd *exec.Cmd, o Options, join func(pid int) error, extra ...*os.File) (*Task, error) {
	specRead, specWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer specWrite.Close()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		_ = specRead.Close()
		return nil, err
	}
	defer statusRead.Close()
	// In the order of shim.FDSpec, FDStatus, FDNet and FDExe. A nil file is a closed
	// descriptor.
	cmd.ExtraFiles = append([]*os.File{specRead, statusWrite, o.Net}, extra...)
	setStreams(cmd, o)
	err = spawn(cmd)
	_ = specRead.Close()
	_ = statusWrite.Close()
	if err != nil {
		return nil, fmt.Errorf("start a container's process: %w", err)
	}
	t := &Task{Pid: cmd.Process.Pid, options: o, cmd: cmd, done: make(chan struct{})}
	go t.wait()
	if err := t.handOver(specWrite, statusRead, join); err != nil {
		_ = cmd.Process.Kill()
		<-t.done
		return nil, err
	}
	t.Started = time.Now()
	return t, nil
}

func (t *Task) handOver(spec, status *os.File, join func(pid int) error) error {
	ready := make([]byte, 1)
	if _, err := io.ReadFull(status, ready); err != nil {
		return errors.New("the container's process ended before it was set up")
	}
	if err := join(t.Pid); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	data, err := json.Marshal(t.options.Spec)
	if err != nil {
		return err
	}
	if _, err := spec.Write(data); err != nil {
		return fmt.Errorf("set up the container: %w", err)
	}
	_ = spec.Close()
	if t.options.Spec.Joined {
		if _, err := io.ReadFull(status, ready); err == nil && ready[0] == shim.Going {
			return nil
		}
		rest, _ := io.ReadAll(status)
		return &StartError{Text: string(ready) + string(rest)}
	}
	text, err := io.ReadAll(status)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		return &StartError{Text: string(text)}
	}
	return nil
}

func setStreams(cmd *exec.Cmd, o Options) {
	// Typed nil pointers must not become non-nil interfaces.
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if o.Stdout != nil {
		cmd.Stdout = o.Stdout
	}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
	}
}

func (t *Task) wait() {
	_ = t.cmd.Wait()
	status, _ := t.cmd.ProcessState.Sys().(syscall.WaitStatus)
	t.result = Result{Code: status.ExitStatus(), Finished: time.Now()}
	if status.Signaled() {
		t.result.Signal = status.Signal()
		t.result.Code = 128 + int(status.Signal())
	}
	close(t.done)
}

// Done returns a channel that is closed when the process has ended and, in a pid namespace,
// all processes of the container have.
func (t *Task) Done() <-chan struct{} { return t.done }

// Result returns how the process ended. It is valid after Done.
func (t *Task) Result() Result { return t.result }

// Signal sends a signal to the container's first process.
func (t *Task) Signal(sig syscall.Signal) {
	select {
	case <-t.done:
	default:
		_ = t.cmd.Process.Signal(sig)
	}
}

// Kill kills the whole container.
func (t *Task) Kill() { t.Signal(unix.SIGKILL) }

// KillTree kills a process that Exec has started, and its child in the container.
func (t *Task) KillTree() {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", t.Pid, t.Pid))
	for _, c := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(c); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	t.Kill()
}

// Exec starts another process in the container, in its namespaces and with the identity and
// limits of o.Spec.
func (t *Task) Exec(o Options) (*Task, error) {
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, fmt.Errorf("exec needs the nsenter command (package util-linux): %w", err)
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	o.Spec.Root, o.Spec.Mounts, o.Spec.EnterNet, o.Spec.Hostname = "", nil, false, ""
	o.Spec.Joined = true
	o.Net, o.Isolation, o.Cgroup = nil, t.options.Isolation, t.options.Cgroup
	args := append(t.options.Isolation.enterArgs(), "-t", strconv.Itoa(t.Pid))
	if t.options.Net != nil {
		args = append(args, "-n")
	}
	args = append(args, "--", "/proc/self/fd/"+strconv.Itoa(shim.FDExe), shim.Arg)
	cmd := exec.Command(enter, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if o.TTY {
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 0
	}
	return launch(cmd, o, func(pid int) error { return joinTree(o.Cgroup, pid) }, exe)
}

// joinTree adds pid and its child to the group: nsenter forks in order to enter a pid
// namespace.
func joinTree(g *cgroups.Group, pid int) error {
	if g == nil {
		return nil
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, c := range strings.Fields(string(children)) {
		if child, err := strconv.Atoi(c); err == nil {
			if err := g.Add(child); err != nil {
				return err
			}
		}
	}
	return g.Add(pid)
}
