package loginnode

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/relay"
)

// podLink is a client's connection to the user's pod: one of its own for each,
// so that requests and keepalives mean the same at both ends.
type podLink struct {
	ready chan struct{}
	conn  ssh.Conn // nil: err says why
	err   error

	mu      sync.Mutex
	state   string
	waiters map[chan string]bool
}

// openLink begins to connect to the user's pod.
func (c *conn) openLink() {
	l := &podLink{ready: make(chan struct{}), waiters: map[chan string]bool{}}
	c.link = l
	if err := c.ctx.Err(); err != nil { // the client has gone already
		l.err = err
		close(l.ready)
		return
	}
	a := &Admission{Conn: c.id, From: c.from, To: addrPort(c.LocalAddr()), Options: c.login.Options, Inside: c.inside()}
	go func() {
		defer c.server.recoverPanic()
		var chans <-chan ssh.NewChannel
		l.conn, chans, l.err = c.server.pods.link(c.ctx, c.login.User, a, l.say)
		close(l.ready)
		if l.err != nil {
			c.server.cfg.Log.Error("no pod for a login", "user", c.login.User.Name, "error", l.err)
			return
		}
		stop := context.AfterFunc(c.ctx, func() { _ = l.conn.Close() })
		defer stop()
		c.fromPod(chans)
		_ = c.Close() // the pod is gone
	}()
}

// fromPod passes on what the pod opens to the client: connections to its -R,
// and to the agent.
func (c *conn) fromPod(chans <-chan ssh.NewChannel) {
	for nc := range chans {
		switch nc.ChannelType() {
		case "forwarded-tcpip", "forwarded-streamlocal@openssh.com", "auth-agent@openssh.com":
			go func() {
				defer c.server.recoverPanic()
				c.relay(nc, c.ssh)
			}()
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
}

// say tells those who wait what for.
func (l *podLink) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = text
	for ch := range l.waiters {
		select {
		case ch <- text:
		default:
		}
	}
}

// wait returns the connection to the pod; tell, if not nil, is called with what
// it waits for.
func (l *podLink) wait(ctx context.Context, tell func(string)) (ssh.Conn, error) {
	news := make(chan string, 8)
	l.mu.Lock()
	if l.state != "" {
		news <- l.state
	}
	l.waiters[news] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiters, news)
		l.mu.Unlock()
	}()
	for {
		select {
		case <-l.ready:
			if len(news) > 0 {
				continue // it is said all the same what the client has waited for
			}
			return l.conn, l.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case text := <-news:
			if tell != nil {
				tell(text)
			}
		}
	}
}

func (l *podLink) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// relayRequest passes a global request on to the pod.
func (c *conn) relayRequest(r *ssh.Request) (bool, []byte) {
	pod, err := c.link.wait(c.ctx, nil)
	if err != nil {
		return false, nil
	}
	ok, payload, err := pod.SendRequest(r.Type, r.WantReply, r.Payload)
	return ok && err == nil, payload
}

// relayChannel passes a forwarding on to the pod.
func (c *conn) relayChannel(nc ssh.NewChannel) {
	pod, err := c.link.wait(c.ctx, nil)
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "your login pod cannot be started")
		return
	}
	c.relay(nc, pod)
}

// relay passes a channel on while there is room for it.
func (c *conn) relay(nc ssh.NewChannel, to ssh.Conn) {
	r := c.channels()
	if !r.Enter() {
		_ = nc.Reject(ssh.ResourceShortage, "too many forwarded connections")
		return
	}
	defer r.Leave()
	relay.Open(nc, to, &c.flow)
}

// relayed is a session that runs in a pod. It is what log and drain know of it.
type relayedSession struct {
	conn  *conn
	near  ssh.Channel
	began time.Time
	flow  relay.Flow

	mu                 sync.Mutex
	kind, command, tty string
	exit               *int
	signal             string
}

// relaySession passes a session on to the pod. While that starts, the client
// is told so.
func (c *conn) relaySession(nc ssh.NewChannel) {
	var far ssh.Channel
	var farAsked <-chan *ssh.Request
	open := func(pod ssh.Conn) (err error) {
		far, farAsked, err = pod.OpenChannel("session", nc.ExtraData())
		return err
	}
	if c.link.isReady() && c.link.err == nil {
		if err := open(c.link.conn); err != nil {
			relay.Reject(nc, err)
			return
		}
	}
	near, asked, err := nc.Accept()
	if err != nil {
		if far != nil {
			_ = far.Close()
		}
		return
	}
	if far == nil {
		pod, err := c.link.wait(c.ctx, func(text string) { _, _ = near.Stderr().Write([]byte("loginnode: " + text + "\r\n")) })
		if err == nil {
			err = open(pod)
		}
		if err != nil {
			rejectWithoutPod(near, asked)
			return
		}
	}
	r := &relayedSession{conn: c, near: near}
	relay.Splice(
		relay.Side{Channel: near, Requests: asked, Watch: r.clientRequest},
		relay.Side{Channel: far, Requests: farAsked, Watch: r.podRequest}, &r.flow)
	r.ended()
}

// sayNoPod tells a client why what it asks for does not begin.
func rejectWithoutPod(near ssh.Channel, asked <-chan *ssh.Request) {
	for r := range asked {
		_ = r.Reply(true, nil)
		switch r.Type {
		case "shell", "exec", "subsystem":
			_, _ = near.Stderr().Write([]byte("loginnode: your login pod cannot be started; the administrator finds the reason in the log\r\n"))
			_, _ = near.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{1}))
			_ = near.Close()
		}
	}
}

// Say writes a message to the client, if it has a terminal.
func (r *relayedSession) Say(text string) {
	defer r.conn.server.recoverPanic()
	r.mu.Lock()
	tty := r.tty
	r.mu.Unlock()
	if tty != "" {
		_, _ = r.near.Stderr().Write([]byte("\r\n" + text + "\r\n"))
	}
}

// contain keeps a defect to this session.
func (r *relayedSession) recoverPanic() {
	if p := recover(); p != nil {
		r.conn.server.reportPanic(p)
		_ = r.near.Close()
	}
}

// asked sees what the client asks for.
func (r *relayedSession) clientRequest(q *ssh.Request) {
	defer r.recoverPanic()
	var m struct{ Value string }
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q.Type {
	case "pty-req":
		r.tty = "pod"
		return
	case "shell":
	case "exec", "subsystem":
		if ssh.Unmarshal(q.Payload, &m) != nil {
			return
		}
	default:
		return
	}
	if r.kind != "" {
		return
	}
	r.kind, r.command = q.Type, m.Value
	if q.Type == "subsystem" {
		r.kind, r.command = m.Value, ""
		if m.Value != "sftp" {
			r.kind = "subsystem" // names of metrics are not the client's to choose
		}
	}
	s := r.conn.server
	r.began = s.cfg.Now()
	s.sessionStarted(r, r.kind, r.record("session-start"))
}

// answered sees what the pod tells of the end.
func (r *relayedSession) podRequest(q *ssh.Request) {
	defer r.recoverPanic()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q.Type {
	case "exit-status":
		var m struct{ Code uint32 }
		if ssh.Unmarshal(q.Payload, &m) == nil {
			code := int(m.Code)
			r.exit = &code
		}
	case "exit-signal":
		var m struct {
			Name string
			Rest []byte `ssh:"rest"`
		}
		if ssh.Unmarshal(q.Payload, &m) == nil {
			r.signal = m.Name
		}
	}
}

func (r *relayedSession) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kind == "" {
		return
	}
	rec := r.record("session-end")
	rec.Exit, rec.Signal = r.exit, r.signal
	rec.BytesIn, rec.BytesOut = r.flow.In.Load(), r.flow.Out.Load()
	s := r.conn.server
	rec.Seconds = s.cfg.Now().Sub(r.began).Seconds()
	s.sessionEnded(r, rec)
}

func (r *relayedSession) record(event string) audit.Record {
	out := r.conn.record(event)
	out.Kind, out.Command, out.TTY = r.kind, r.command, r.tty
	if o := r.conn.login.Options; o.HasCommand {
		out.Forced = o.Command
	}
	return out
}
