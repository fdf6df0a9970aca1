package salloc

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// runCommand runs the user's command or shell and returns its exit code.
func (o *Options) runCommand(p *option.Parsed, a *alloc.Allocation, c *alloc.Client, signals <-chan os.Signal) int {
	environ := o.environment(a)
	args := p.Args
	if len(args) == 0 {
		args = []string{o.shell()}
	}
	path := findProgram(args[0], environ)
	if path == "" {
		o.printf("error: _fork_command: Unable to find command \"%s\"", printable.Escape(args[0]))
		return 1
	}
	cmd := &exec.Cmd{Path: path, Args: args, Env: environ, Stdin: o.p.In, Stdout: o.p.Out, Stderr: o.p.Err}
	cmd.Dir = p.Step.Chdir
	terminal, foreground := o.terminal()
	interactive := foreground && len(p.Args) == 0
	if interactive {
		// A shell with job control runs in its own process group, in the foreground.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: terminal}
	}
	if err := cmd.Start(); err != nil {
		o.printf("error: %s: %v", args[0], err)
		return 1
	}
	ended := make(chan int, 1)
	go func() { ended <- exitCode(cmd) }()
	code := o.waitForCommand(p, a, c, cmd.Process, signals, ended, interactive)
	if interactive {
		o.takeForeground(terminal)
	}
	return code
}

// waitForCommand waits for the end of the command and returns its exit code. When the
// allocation is revoked, the command is signaled only with --kill-command; salloc waits
// for its end in any case.
func (o *Options) waitForCommand(
	p *option.Parsed, a *alloc.Allocation, c *alloc.Client, child *os.Process,
	signals <-chan os.Signal, ended <-chan int, interactive bool,
) int {
	over := a.Over()
	minCode := 0
	for {
		select {
		case code := <-ended:
			return max(code, minCode)
		case <-over:
			over = nil
			select {
			case code := <-ended:
				return max(code, minCode)
			default:
			}
			o.released = true
			c.Info("Job allocation %d has been revoked.", a.ID)
			if sig := p.Client.KillCommand; sig != nil {
				o.kill(child, syscall.Signal(*sig), interactive)
			}
		case s := <-signals:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			switch sig {
			case syscall.SIGINT, syscall.SIGQUIT: // the terminal sends it to the command as well
			case syscall.SIGTERM, syscall.SIGHUP:
				// Print the lines of Slurm's salloc once, whether the command or the job
				// ends first.
				if !o.released && sig == syscall.SIGHUP {
					c.Info("Relinquishing job allocation %d", a.ID)
					minCode = 1
				} else if !o.released {
					c.Info("Job allocation %d has been revoked.", a.ID)
				}
				o.released, over = true, nil
				a.Complete(0)
				o.kill(child, sig, interactive)
			default:
				o.kill(child, sig, interactive)
			}
		}
	}
}

// kill signals the command, or the whole process group of a shell.
func (o *Options) kill(child *os.Process, sig syscall.Signal, group bool) {
	if sig == 0 {
		sig = syscall.SIGTERM
		if group {
			sig = syscall.SIGHUP
		}
	}
	pid := child.Pid
	if group {
		pid = -pid
	}
	syscall.Kill(pid, sig) //nolint:errcheck // it may have ended
}

// exitCode waits for the command and returns its exit code. As in Slurm's salloc, a
// command that was ended by a signal does not count as failed.
func exitCode(cmd *exec.Cmd) int {
	cmd.Wait() //nolint:errcheck // the process state contains it
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Exited() {
		return ws.ExitStatus()
	}
	return 0
}

// shell returns the user's shell.
func (o *Options) shell() string {
	if s := o.p.Env("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}

// terminal returns the descriptor of the terminal at In, and whether salloc is in its
// foreground.
func (o *Options) terminal() (fd int, foreground bool) {
	f, ok := o.p.In.(*os.File)
	if !ok {
		return 0, false
	}
	fd = int(f.Fd())
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return fd, err == nil && group == unix.Getpgrp()
}

// takeForeground makes salloc the foreground process of the terminal again.
func (o *Options) takeForeground(fd int) {
	// The kernel stops a background process that changes the terminal, unless it ignores
	// the signal.
	signal.Ignore(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()) //nolint:errcheck // the terminal may be gone
}

// findProgram returns the path of a program in the PATH of environ, or "".
func findProgram(name string, environ []string) string {
	usable := func(path string) bool {
		st, err := os.Stat(path)
		return err == nil && st.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
	}
	if strings.Contains(name, "/") {
		if usable(name) {
			return name
		}
		return ""
	}
	list, _ := env.Get(environ, "PATH")
	for _, dir := range filepath.SplitList(list) {
		if path := filepath.Join(dir, name); usable(path) {
			return path
		}
	}
	return ""
}
