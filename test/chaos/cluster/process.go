package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// restartDelay is how long a process that ended stays away, unless a fault says otherwise.
const restartDelay = 100 * time.Millisecond

// Process is a process that is started again whenever it ends.
type Process struct {
	Name, Address string

	path, log string
	args      []string
	kind      string // in the counts of faults
	tally     *tally

	mu      sync.Mutex
	cmd     *exec.Cmd
	running bool
	stopped bool
	held    time.Time // it is not started again before
	began   time.Time // when it was started last
	done    chan struct{}
}

// run starts the process and keeps it running.
func (p *Process) run() error {
	if err := p.start(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		for {
			_ = p.cmd.Wait() // only this goroutine replaces cmd
			p.ended()
			time.Sleep(restartDelay)
			for p.isHeld() {
				time.Sleep(10 * time.Millisecond)
			}
			if p.start() != nil {
				return
			}
		}
	}()
	return nil
}

func (p *Process) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
}

func (p *Process) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped && time.Now().Before(p.held)
}

var errStopped = errors.New("stopped")

func (p *Process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.began = time.Now()
	err = p.cmd.Start()
	p.running = err == nil
	return err
}

// settled is how long a standby takes to follow the leader, and a member of etcd the others.
const settled = 5 * time.Second

// Settled reports whether the process has run for long enough to replace one that fails.
func (p *Process) Settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return p.running && now.After(p.held) && now.Sub(p.began) > settled
}

// identity is a part of the process' name in the lease.
func (p *Process) identity() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("-%d-", p.cmd.Process.Pid)
}

// Pause stops the process until Continue.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Continue lets the process run on after Pause.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

// signal sends a signal, and counts it if it is a fault. A process that has just ended by itself
// will be started again, and gets none.
func (p *Process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch err := p.cmd.Process.Signal(s); {
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case err != nil:
		return err
	}
	switch s {
	case syscall.SIGKILL:
		p.tally.add(Killed, p.kind)
	case syscall.SIGSTOP:
		p.tally.add(Stopped, p.kind)
	}
	return nil
}

// Replace ends the process as a kubelet does, and starts the program of another directory
// in its place.
func (p *Process) Replace(bin string) error {
	p.mu.Lock()
	p.path = filepath.Join(bin, filepath.Base(p.path))
	p.mu.Unlock()
	return p.signal(syscall.SIGTERM)
}

// Bin returns the directory of the process's program.
func (p *Process) Bin() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return filepath.Dir(p.path)
}

// Kill kills the process. It stays away for at least that long.
func (p *Process) Kill(away time.Duration) error {
	p.mu.Lock()
	p.held = time.Now().Add(away)
	p.mu.Unlock()
	return p.signal(syscall.SIGKILL)
}

// Release lets a process that was killed come back now.
func (p *Process) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = time.Time{}
}

// Stop kills the process for good.
func (p *Process) Stop() {
	p.mu.Lock()
	p.stopped = true
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil || p.done == nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// controlPlane returns the process with the API server, etcd, the controllers and the nodes.
func (c *Cluster) controlPlane() (int, error) {
	data, err := os.ReadFile(filepath.Join(c.state, "process.json"))
	if err != nil {
		return 0, err
	}
	var p struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return 0, err
	}
	if p.PID <= 1 {
		return 0, errors.New("no process of the control plane is recorded")
	}
	return p.PID, nil
}

// KillControlPlane kills the process of the control plane. Up starts it again.
func (c *Cluster) KillControlPlane() error {
	pid, err := c.controlPlane()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	c.Count(Killed, "control plane")
	for syscall.Kill(pid, 0) == nil && !isZombie(pid) {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
