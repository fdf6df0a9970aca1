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
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// command runs the user's command, or shell, and returns its exit code.
func (o *Options) command(p *option.Parsed, a *alloc.Allocation, c *alloc.Client, signals <-chan os.Signal) int {
	environ := o.environment(a)
	args := p.Args
	if len(args) == 0 {
		args = []string{o.shell()}
	}
	path := find(args[0], environ)
	if path == "" {
		o.say("error: _fork_command: Unable to find command \"%s\"", args[0])
		return 1
	}
	cmd := &exec.Cmd{Path: path, Args: args, Env: environ, Stdin: o.p.In, Stdout: o.p.Out, Stderr: o.p.Err}
	cmd.Dir = p.Step.Chdir
	terminal, foreground := o.terminal()
	interactive := foreground && len(p.Args) == 0
	if interactive {
		// A shell with job control: a group of its own, in the foreground.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: terminal}
	}
	if err := cmd.Start(); err != nil {
		o.say("error: %s: %v", args[0], err)
		return 1
	}
	ended := make(chan int, 1)
	go func() { ended <- exitCode(cmd) }()
	code := o.attend(p, a, c, cmd.Process, signals, ended, interactive)
	if interactive {
		o.foreground(terminal)
	}
	return code
}

// attend waits for the command. When the allocation is revoked the command is
// told only with --kill-command; salloc waits for its end all the same.
func (o *Options) attend(p *option.Parsed, a *alloc.Allocation, c *alloc.Client, child *os.Process,
	signals <-chan os.Signal, ended <-chan int, interactive bool) int {
	over := a.Over()
	least := 0
	for {
		select {
		case code := <-ended:
			return max(code, least)
		case <-over:
			over = nil
			select {
			case code := <-ended:
				return max(code, least)
			default:
			}
			o.gaveBack = true
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
			case syscall.SIGINT, syscall.SIGQUIT: // the terminal sends it to the command, too
			case syscall.SIGTERM, syscall.SIGHUP:
				// The lines and the exit code of Slurm's salloc, once each, whether
				// the command or the news of the job's end comes first.
				if !o.gaveBack && sig == syscall.SIGHUP {
					c.Info("Relinquishing job allocation %d", a.ID)
					least = 1
				} else if !o.gaveBack {
					c.Info("Job allocation %d has been revoked.", a.ID)
				}
				o.gaveBack, over = true, nil
				a.Complete(0)
				o.kill(child, sig, interactive)
			default:
				o.kill(child, sig, interactive)
			}
		}
	}
}

// kill signals the command; a shell of its own group with all that is in it.
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
	syscall.Kill(pid, sig) //nolint:errcheck // gone is as good
}

// exitCode waits for the command. As with Slurm's salloc, one that a signal
// ended counts as no failure.
func exitCode(cmd *exec.Cmd) int {
	cmd.Wait() //nolint:errcheck // the state has it
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Exited() {
		return ws.ExitStatus()
	}
	return 0
}

func (o *Options) shell() string {
	if s := o.p.Env("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}

// terminal is the descriptor of the terminal at In, if salloc is in its
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

// foreground takes the terminal back from the shell.
func (o *Options) foreground(fd int) {
	// A process of the background that sets the terminal is stopped, unless it
	// ignores this.
	signal.Ignore(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()) //nolint:errcheck // the terminal may be gone
}

// find looks a command up in the PATH of environ.
func find(name string, environ []string) string {
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
