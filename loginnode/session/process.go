package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/flow"
)

// widePipe is the size, in bytes, of a pipe through which a program without a
// terminal reads or writes much.
const widePipe = 256 << 10

// process is a session's child.
type process struct {
	cmd *exec.Cmd

	pidfd *os.File
	// The server's ends; with a terminal only tty is set.
	stdin, stdout, stderr *os.File
	tty                   *terminal

	unread chan struct{} // closed once the client reads no more of stdout
	once   sync.Once

	mu     sync.Mutex
	exited bool
}

// launch starts the child.
func (s *Session) launch() (p *process, err error) {
	u := s.Conn.Login.User
	if s.cfg.MakeHome {
		if err := makeHome(u, s.cfg.Skeleton); err != nil {
			return nil, err
		}
	}
	if s.cfg.Register != nil {
		s.cfg.Register(u)
	}
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.cfg.Child[0], s.cfg.Child[1:]...)
	// Nothing of the server's environment; the collector is of no use to a
	// program that lives for milliseconds.
	cmd.Env = []string{"GOGC=off"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.cfg.Place != nil {
		fd, done, err := s.cfg.Place(u)
		if err != nil {
			return nil, fmt.Errorf("limits of the user: %w", err)
		}
		s.undo = append(s.undo, done)
		if fd >= 0 {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
	}
	p = &process{cmd: cmd, tty: s.tty, unread: make(chan struct{})}
	theirs, err := p.attach()
	defer closeAll(theirs)
	if err != nil {
		return nil, err
	}
	if p.pidfd, err = start(cmd, spec); err != nil {
		closeAll([]*os.File{p.stdin, p.stdout, p.stderr})
		return nil, err
	}
	return p, nil
}

// attach connects the child's descriptors 0 to 2, and returns the files that
// are the child's alone once it runs.
func (p *process) attach() ([]*os.File, error) {
	if p.tty != nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.tty.slave, p.tty.slave, p.tty.slave
		p.cmd.SysProcAttr.Setctty = true
		return []*os.File{p.tty.slave}, nil
	}
	var theirs []*os.File
	pipe := func(mine **os.File, write bool) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if write {
			r, w = w, r
		}
		*mine = r
		theirs = append(theirs, w)
		return w, nil
	}
	in, err1 := pipe(&p.stdin, true)
	out, err2 := pipe(&p.stdout, false)
	errs, err3 := pipe(&p.stderr, false)
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll([]*os.File{p.stdin, p.stdout, p.stderr})
		return theirs, err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errs
	return theirs, nil
}

// widen gives a pipe more than the usual 64 KiB, so that program and server take
// turns less often. It is a wish: pipe-user-pages-soft may be against it, which
// is why pipes that carry little stay as they are.
func widen(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe) })
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// start starts the child and hands it its Spec. It returns a descriptor of the
// process.
func start(cmd *exec.Cmd, spec *Spec) (*os.File, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.ExtraFiles = []*os.File{r} // becomes specFD
	fd := -1
	cmd.SysProcAttr.PidFD = &fd
	err = cmd.Start()
	r.Close()
	if err != nil {
		return nil, err
	}
	// A child that died before it read this says so by its exit status.
	_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = w.Write(data)
	if err := syscall.SetNonblock(fd, true); err != nil { // else NewFile would not poll it
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// spec is what the child is to become. It also asks for the session's
// credential.
func (s *Session) spec() (*Spec, error) {
	u, o := s.Conn.Login.User, s.Conn.Login.Options
	env := base(u, s.cfg.Path, s.Conn.From, s.Conn.To)
	env.add(s.env.list)
	if s.cfg.Prepare != nil {
		more, done, err := s.cfg.Prepare(s.ctx, s.Conn.Login)
		if done != nil {
			s.undo = append(s.undo, done)
		}
		if err != nil {
			return nil, err
		}
		env.add(more)
	}
	if s.cfg.PermitUserEnvironment {
		env.add(o.Environment)
	}
	if s.tty != nil {
		env.set("SSH_TTY", s.tty.name)
		env.set("TERM", s.term)
	}
	if s.agent != "" {
		env.set("SSH_AUTH_SOCK", s.agent)
	}
	spec := &Spec{
		UID: u.UID, GID: u.GID, Groups: u.Groups, Drop: os.Geteuid() == 0,
		NoNewPrivileges: !s.cfg.AllowNewPrivileges,
		Home:            u.Home, Shell: u.Shell, Limits: s.cfg.Limits, Umask: s.cfg.Umask,
		Command: s.Command, SFTP: s.Kind == "sftp" && s.Command == "",
		OOMScoreAdj: 500,
		Message:     s.Kind == "shell" && s.tty != nil && !o.HasCommand, MOTD: s.cfg.MOTD,
	}
	if o.HasCommand {
		spec.Command, spec.SFTP = s.Forced, false
		env.set("SSH_ORIGINAL_COMMAND", s.Command)
		if s.Kind == "shell" {
			env = env.without("SSH_ORIGINAL_COMMAND")
		}
	}
	if s.cfg.LoginPath != "" && s.Kind == "shell" && !o.HasCommand && filepath.Base(u.Shell) == "bash" {
		env.set("PROMPT_COMMAND", "PATH="+quote(s.cfg.LoginPath)+":$PATH; unset PROMPT_COMMAND")
	}
	s.place(spec, env)
	spec.Env = env.list
	return spec, nil
}

// notInside are variables that mean something on this machine only.
var notInside = []string{"KUBECONFIG", "SSH_TTY", "SSH_AUTH_SOCK", "MAIL"}

// place has the shell start where the connection's sessions run.
func (s *Session) place(spec *Spec, env *environment) {
	if s.Conn.Inside == nil {
		return
	}
	var names []string
	for _, p := range env.list {
		if name, _, _ := strings.Cut(p, "="); !slices.Contains(notInside, name) {
			names = append(names, name)
		}
	}
	for _, a := range s.Conn.Inside.Command {
		spec.Inside = append(spec.Inside, strings.ReplaceAll(a, "%E", strings.Join(names, ",")))
	}
	if s.tty != nil {
		spec.Inside = append(spec.Inside, s.Conn.Inside.Terminal...)
	}
	spec.Message = false
	if s.Kind == "sftp" && !s.Conn.Login.Options.HasCommand {
		spec.Command, spec.SFTP = or(s.cfg.SFTPServer, debianSFTP), false
	}
}

// quote makes a word of a shell's.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// debianSFTP serves sftp where the session's child cannot do so itself.
const debianSFTP = "/usr/lib/openssh/sftp-server"

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (e *environment) without(name string) *environment {
	var out environment
	for _, p := range e.list {
		if len(p) <= len(name) || p[:len(name)+1] != name+"=" {
			out.add([]string{p})
		}
	}
	return &out
}

// signal sends a signal to the process group of the child, if it still runs.
func (p *process) signal(sig syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.exited && syscall.Kill(-p.cmd.Process.Pid, sig) == nil
}

// hangup tells a process that its client is gone. With a terminal the kernel
// does so when the master closes; a command without one would not notice
// until it writes. What was started with nohup or setsid lives on.
func (p *process) hangup() {
	closeAll([]*os.File{p.stdin, p.stdout, p.stderr})
	p.signal(syscall.SIGHUP)
}

// wait waits for the child. (*exec.Cmd).Wait would block a thread for each
// session; a pidfd is something that the runtime's poller can wait for.
func (p *process) wait() (status syscall.WaitStatus, err error) {
	defer func() { _ = p.cmd.Process.Release() }()
	defer p.pidfd.Close()
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return 0, err
	}
	perr := raw.Read(func(uintptr) bool {
		var over bool
		over, status, err = p.reap()
		return over
	})
	return status, errors.Join(err, perr)
}

// reap takes in the child if it has ended. Its number is free for others from
// then on, so nobody may signal it meanwhile.
func (p *process) reap() (over bool, status syscall.WaitStatus, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return false, 0, nil
	}
	p.exited = pid != 0
	return p.exited, status, err
}

// run passes bytes until the child has ended and its output is delivered.
func (p *process) run(s *Session) (syscall.WaitStatus, error) {
	if p.tty != nil {
		return p.runTerminal(s)
	}
	go func() {
		defer s.contain()
		_ = flow.Copy(p.stdin, s.channel, &s.in, make([]byte, flow.Small), func() { widen(p.stdin) })
		p.stdin.Close()
		// A process that does not read must not keep the client waiting.
		_, _ = io.Copy(io.Discard, s.channel)
	}()
	out, errs := s.deliver(s.channel, p.stdout), s.deliver(s.channel.Stderr(), p.stderr)
	w, err := p.wait()
	select {
	case <-out:
		<-errs
	case <-p.unread:
		// What the client has not taken of the one is in the way of the other.
		select {
		case <-errs:
		case <-time.After(drainErrors):
		}
	}
	return w, err
}

// drainErrors is how long the end of a program whose output nobody reads waits
// for its standard error to be delivered.
const drainErrors = time.Second

// deliver passes an output of a program to the client, until either ends.
func (s *Session) deliver(to io.Writer, from *os.File) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer s.contain()
		_ = flow.Copy(to, from, &s.out, make([]byte, flow.Small), func() { widen(from) })
		from.Close() // the program gets SIGPIPE if the client takes no more
	}()
	return done
}

// readsNoMore has the program get SIGPIPE when it goes on writing.
func (p *process) readsNoMore() {
	p.once.Do(func() {
		close(p.unread)
		p.stdout.Close()
	})
}

// After the child's end its last output is on its way through the terminal:
// it is read until nothing comes for drainQuiet. Somebody in the background
// may go on writing, so there is a limit to it.
const (
	drainQuiet = 50 * time.Millisecond
	drainBytes = 1 << 20
)

func (p *process) runTerminal(s *Session) (syscall.WaitStatus, error) {
	go func() {
		defer s.contain()
		_ = flow.Copy(p.tty.master, s.channel, &s.in, make([]byte, 2<<10), nil)
	}()
	ended := make(chan struct{})
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		defer s.contain()
		p.deliver(s, ended)
	}()
	w, err := p.wait()
	close(ended)
	// Wakes a read that waits already; the next ones set their own.
	_ = p.tty.master.SetReadDeadline(time.Now().Add(drainQuiet))
	<-delivered
	return w, err
}

// bulk is how much a terminal prints at a time that nobody reads as it comes.
// Whoever prints so lets the others' keys go first.
const bulk = 1 << 10

// deliver passes the terminal's output to the client.
func (p *process) deliver(s *Session, ended <-chan struct{}) {
	buffer := make([]byte, 8<<10)
	left := drainBytes
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	for left > 0 {
		if over() {
			_ = p.tty.master.SetReadDeadline(time.Now().Add(drainQuiet))
		}
		was := over()
		n, err := p.tty.master.Read(buffer)
		if n > 0 {
			s.out.Add(int64(n))
			if _, werr := s.channel.Write(buffer[:n]); werr != nil {
				return
			}
			if was {
				left -= n
			}
			if n > bulk {
				runtime.Gosched()
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !was {
			continue // the child ended while this read waited
		}
		if err != nil {
			return // EIO: nobody has the terminal open any more
		}
	}
}
