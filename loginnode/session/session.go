package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Session is one session channel.
type Session struct {
	Conn *Conn
	// Kind is shell, exec or a subsystem's name; Command the requested command; Forced
	// the command of the key that runs instead.
	Kind, Command, Forced string
	TTY                   string // "": none

	cfg     *Config
	channel ssh.Channel
	ctx     context.Context
	cancel  context.CancelFunc

	env   environment // variables from the client
	asked int
	term  string
	tty   *terminal
	agent string
	undo  []func() // in the reverse order

	mu      sync.Mutex
	process *process // nil before the start

	in, out atomic.Int64
}

// Serve serves a session channel until it ends. A panic ends only this session.
func Serve(cfg *Config, conn *Conn, newChannel ssh.NewChannel) {
	channel, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	s := &Session{Conn: conn, cfg: cfg, channel: channel}
	s.ctx, s.cancel = context.WithCancel(conn.Context)
	defer s.release()
	defer func() { _ = channel.Close() }()
	// After a panic the requests must still be read, or they would block the
	// connection's other channels.
	defer func() { go ssh.DiscardRequests(requests) }()
	defer s.recoverPanic()
	s.loop(requests)
}

// recoverPanic, deferred by every goroutine of a session, recovers a panic and ends only
// this session.
func (s *Session) recoverPanic() {
	if r := recover(); r != nil {
		if f := s.cfg.Events.Panicked; f != nil {
			f(r)
		}
		_ = s.channel.Close()
	}
}

// release releases the resources of the session.
func (s *Session) release() {
	s.cancel()
	if s.process != nil {
		s.process.hangup()
	}
	if s.tty != nil {
		s.tty.close()
	}
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

// loop serves requests until the channel closes.
func (s *Session) loop(requests <-chan *ssh.Request) {
	for r := range requests {
		ok, after := s.request(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if after != nil {
			after()
		}
	}
	// The client has disconnected or received its exit status.
}

// request serves one request. The caller calls after, if it is not nil, once the reply
// is sent.
func (s *Session) request(r *ssh.Request) (ok bool, after func()) {
	switch r.Type {
	case "env":
		return s.setEnv(r.Payload), nil
	case "pty-req":
		return s.openPTY(r.Payload), nil
	case "window-change":
		return s.windowChange(r.Payload), nil
	case "auth-agent-req@openssh.com":
		return s.openAgent(), nil
	case "shell":
		return s.start("shell", "")
	case "exec", "subsystem":
		var m struct{ Value string }
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return false, nil
		}
		if r.Type == "exec" {
			return s.start("exec", m.Value)
		}
		return s.subsystem(m.Value)
	case "signal":
		return s.signal(r.Payload), nil
	case "eow@openssh.com":
		return s.stopOutput(), nil
	case "break":
		return s.tty != nil && s.tty.sendBreak() == nil, nil
	}
	return false, nil // x11-req and xon-xoff among them
}

func (s *Session) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil
}

func (s *Session) setEnv(payload []byte) bool {
	var m struct{ Name, Value string }
	if ssh.Unmarshal(payload, &m) != nil || s.started() {
		return false
	}
	patterns := s.cfg.AcceptEnv
	if patterns == nil {
		patterns = AcceptEnv
	}
	if s.asked++; s.asked > maxEnv || !acceptable(patterns, m.Name, m.Value) {
		return false
	}
	s.env.set(m.Name, m.Value)
	return true
}

func (s *Session) openPTY(payload []byte) bool {
	var m ptyRequest
	if ssh.Unmarshal(payload, &m) != nil || s.started() || s.tty != nil || s.Conn.Login.Options.NoPTY {
		return false
	}
	if len(m.Term) > 128 {
		return false
	}
	t, err := openTerminal(s.Conn.Login.User.UID)
	if err != nil {
		s.failed(err)
		return false
	}
	if err := errors.Join(
		t.applyModes(m.Modes),
		t.resize(windowChange{m.Columns, m.Rows, m.Width, m.Height}),
	); err != nil {
		t.close()
		s.failed(err)
		return false
	}
	s.tty, s.TTY, s.term = t, t.name, m.Term
	return true
}

func (s *Session) windowChange(payload []byte) bool {
	var w windowChange
	return ssh.Unmarshal(payload, &w) == nil && s.tty != nil && s.tty.resize(w) == nil
}

func (s *Session) openAgent() bool {
	if s.started() || s.agent != "" || s.cfg.Agent == nil || s.Conn.Login.Options.NoAgent {
		return false
	}
	socket, done, err := s.cfg.Agent(s.ctx, s.Conn.Login, s.Conn.SSH)
	if err != nil {
		s.failed(fmt.Errorf("agent forwarding: %w", err))
		return false
	}
	s.agent = socket
	s.undo = append(s.undo, done)
	return true
}

func (s *Session) subsystem(name string) (bool, func()) {
	if name != "sftp" || s.cfg.SFTPOff {
		return false, nil
	}
	return s.start(name, s.sftpServer())
}

func (s *Session) signal(payload []byte) bool {
	var m struct{ Name string }
	if ssh.Unmarshal(payload, &m) != nil {
		return false
	}
	sig, known := signals[m.Name]
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	return known && p != nil && p.signal(sig)
}

// stopOutput handles a client that reads no more of standard output: the program gets
// SIGPIPE when it writes. With a terminal it does not, as with sshd.
func (s *Session) stopOutput() bool {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil || p.tty != nil {
		return false
	}
	p.stopOutput()
	return true
}

func (s *Session) failed(err error) {
	if f := s.cfg.Events.Failed; f != nil {
		f(s, err)
	}
}

// start starts the process. A forced command replaces whatever was requested, sftp
// included.
func (s *Session) start(kind, command string) (bool, func()) {
	if s.started() {
		return false, nil
	}
	s.Kind, s.Command = kind, command
	if o := s.Conn.Login.Options; o.HasCommand {
		s.Forced = o.Command
	}
	p, err := s.launch()
	if err != nil {
		s.failed(err)
		// The log has the reason, which may contain what the user must not see.
		return true, func() {
			writeLine(
				s.channel.Stderr(),
				"loginnode: this session cannot be started; the administrator's log has the reason",
			)
			_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(exitStatus{1}))
			_ = s.channel.Close()
		}
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	s.notifyStarted()
	return true, func() {
		go func() {
			defer s.recoverPanic()
			w, err := p.run(s)
			s.finish(w, err, p.cut)
		}()
	}
}

// notifyStarted calls Events.Started. A panic in it must not keep the server from
// waiting for the process.
func (s *Session) notifyStarted() {
	defer s.recoverPanic()
	if f := s.cfg.Events.Started; f != nil {
		f(s)
	}
}

// finish sends the client the exit status, end of file and close, in this order. No end of file
// is sent if output was cut off, because some of it may still be on its way to the client.
func (s *Session) finish(w syscall.WaitStatus, err error, cut bool) {
	end := End{Exit: -1, BytesIn: s.in.Load(), BytesOut: s.out.Load()}
	if err == nil {
		_ = sendExit(s.channel, w)
		if w.Signaled() {
			end.Signal = signalName(w.Signal())
		} else {
			end.Exit = w.ExitStatus()
		}
	}
	if !cut {
		_ = s.channel.CloseWrite()
	}
	_ = s.channel.Close()
	if f := s.cfg.Events.Ended; f != nil {
		f(s, end)
	}
}

// Say writes a message to the client, if it has a terminal.
func (s *Session) Say(text string) {
	defer s.recoverPanic()
	if s.tty != nil {
		writeLine(s.channel.Stderr(), "\r\n"+text)
	}
}
