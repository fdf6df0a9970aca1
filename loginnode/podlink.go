package loginnode

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/relay"
)

// podLink is the connection to the user's pod for one client. Each client has its own,
// so that global requests and keepalives have the same meaning at both ends.
type podLink struct {
	ready chan struct{}
	conn  ssh.Conn // nil: err says why
	err   error

	mu      sync.Mutex
	state   string
	waiters map[chan string]bool
}

// openLink starts to connect to the user's pod.
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

// fromPod relays channels from the pod to the client: connections for ssh -R and to the
// agent.
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

// say reports to all waiters what the link waits for.
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

// wait returns the connection to the pod. Meanwhile tell, if not nil, is called with
// what it waits for.
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
				continue // first report what it waited for
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

// relayRequest relays a global request to the pod.
func (c *conn) relayRequest(r *ssh.Request) (bool, []byte) {
	pod, err := c.link.wait(c.ctx, nil)
	if err != nil {
		return false, nil
	}
	ok, payload, err := pod.SendRequest(r.Type, r.WantReply, r.Payload)
	return ok && err == nil, payload
}

// relayChannel relays a forwarding to the pod.
func (c *conn) relayChannel(nc ssh.NewChannel) {
	pod, err := c.link.wait(c.ctx, nil)
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "your login pod cannot be started")
		return
	}
	c.relay(nc, pod)
}

// relay relays a channel within the user's quota.
func (c *conn) relay(nc ssh.NewChannel, to ssh.Conn) {
	r := c.channels()
	if !r.Enter() {
		_ = nc.Reject(ssh.ResourceShortage, "too many forwarded connections")
		return
	}
	defer r.Leave()
	relay.Open(nc, to, &c.flow)
}

// relayedSession is a session in a pod, for the log and for draining.
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

// relaySession relays a session to the pod. While the pod starts, it sends the client a
// message.
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
		pod, err := c.link.wait(
			c.ctx,
			func(text string) { _, _ = near.Stderr().Write([]byte("loginnode: " + text + "\r\n")) },
		)
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

// rejectWithoutPod tells a client that its session cannot start.
func rejectWithoutPod(near ssh.Channel, asked <-chan *ssh.Request) {
	for r := range asked {
		_ = r.Reply(true, nil)
		switch r.Type {
		case "shell", "exec", "subsystem":
			_, _ = near.Stderr().Write(
				[]byte("loginnode: your login pod cannot be started; the administrator's log has the reason\r\n"),
			)
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

// recoverPanic, deferred, recovers a panic and ends only this session.
func (r *relayedSession) recoverPanic() {
	if p := recover(); p != nil {
		r.conn.server.reportPanic(p)
		_ = r.near.Close()
	}
}

// clientRequest records what the client requests.
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
			r.kind = "subsystem" // clients must not choose the names of metrics
		}
	}
	s := r.conn.server
	r.began = s.cfg.Now()
	s.sessionStarted(r, r.kind, r.record("session-start"))
}

// podRequest records how the session ended, as the pod reports it.
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
