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

// widePipe is the size in bytes of a pipe for a program without a terminal that reads
// or writes much.
const widePipe = 256 << 10

// process is a session's child.
type process struct {
	cmd *exec.Cmd

	pidfd *os.File
	// The server's ends; with a terminal only tty is set.
	stdin, stdout, stderr *os.File
	tty                   *terminal

	unread chan struct{} // closed once the client reads no more of stdout
	cut    bool          // not all output was delivered; set by run
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
	// Without the server's environment. Garbage collection is useless in a program that
	// runs for milliseconds.
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

// attach connects the child's descriptors 0 to 2. It returns the files that the server
// closes once the child runs.
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

// widen makes a pipe larger than the default of 64 KiB, so that program and server
// switch less often. It may fail because of pipe-user-pages-soft, which is why pipes
// that carry little keep their size.
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

// start starts the child and sends it its Spec. It returns a pidfd.
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
	// If the child died before it read this, its exit status says so.
	_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = w.Write(data)
	if err := syscall.SetNonblock(fd, true); err != nil { // else NewFile would not poll it
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// spec returns the child's Spec. It also prepares the session (Config.Prepare).
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

// notInside are variables that are valid only on this machine.
var notInside = []string{"KUBECONFIG", "SSH_TTY", "SSH_AUTH_SOCK", "MAIL"}

// place makes the shell start where the connection's sessions run.
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

// quote quotes text as one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// debianSFTP is the path of OpenSSH's sftp server in Debian.
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

// signal sends a signal to the process group of the child if it is running.
func (p *process) signal(sig syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.exited && syscall.Kill(-p.cmd.Process.Pid, sig) == nil
}

// hangup sends SIGHUP to a process whose client has disconnected. With a terminal the
// kernel does so when the master closes; a command without one would not notice until
// it writes. Processes started with nohup or setsid continue.
func (p *process) hangup() {
	closeAll([]*os.File{p.stdin, p.stdout, p.stderr})
	p.signal(syscall.SIGHUP)
}

// wait waits for the child. (*exec.Cmd).Wait would block a thread for each session;
// the runtime's poller can wait for a pidfd.
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

// reap reaps the child if it has ended. From then on its pid may be reused, so nobody
// may signal it meanwhile.
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

// run copies bytes until the child has ended and its output is delivered.
func (p *process) run(s *Session) (syscall.WaitStatus, error) {
	if p.tty != nil {
		return p.runTerminal(s)
	}
	go func() {
		defer s.recoverPanic()
		_ = flow.Copy(p.stdin, s.channel, &s.in, make([]byte, flow.Small), func() { widen(p.stdin) })
		p.stdin.Close()
		// A process that does not read must not block the client.
		_, _ = io.Copy(io.Discard, s.channel)
	}()
	out, errs := s.deliver(s.channel, p.stdout), s.deliver(s.channel.Stderr(), p.stderr)
	w, err := p.wait()
	select {
	case <-out:
		<-errs
	case <-p.unread:
		p.cut = true
		// Unread output of one stream blocks the other.
		select {
		case <-errs:
		case <-time.After(drainErrors):
		}
	}
	return w, err
}

// drainErrors bounds how long the end of a program whose output is not read waits until
// its standard error is delivered.
const drainErrors = time.Second

// deliver copies an output of a program to the client until either ends.
func (s *Session) deliver(to io.Writer, from *os.File) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer s.recoverPanic()
		_ = flow.Copy(to, from, &s.out, make([]byte, flow.Small), func() { widen(from) })
		from.Close() // the program gets SIGPIPE if the client reads no more
	}()
	return done
}

// stopOutput closes standard output, so that the program gets SIGPIPE when it writes.
func (p *process) stopOutput() {
	p.once.Do(func() {
		close(p.unread)
		p.stdout.Close()
	})
}

// After the child has ended, its last output may still be in the terminal: it is read
// until none arrives for drainQuiet. Processes in the background may continue to write,
// so there is a limit.
const (
	drainQuiet = 50 * time.Millisecond
	drainBytes = 1 << 20
)

func (p *process) runTerminal(s *Session) (syscall.WaitStatus, error) {
	go func() {
		defer s.recoverPanic()
		_ = flow.Copy(p.tty.master, s.channel, &s.in, make([]byte, 2<<10), nil)
	}()
	ended := make(chan struct{})
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		defer s.recoverPanic()
		p.deliver(s, ended)
	}()
	w, err := p.wait()
	close(ended)
	// Interrupts a read that is already waiting; later reads set their own deadlines.
	_ = p.tty.master.SetReadDeadline(time.Now().Add(drainQuiet))
	<-delivered
	return w, err
}

// bulk is the size of a terminal's output that nobody reads as it appears. Such output
// yields to the key strokes of other users.
const bulk = 1 << 10

// deliver copies the terminal's output to the client.
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
			return // EIO: no process has the terminal open
		}
	}
}
