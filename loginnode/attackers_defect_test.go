package loginnode_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

func TestS08DefectEndsOneSession(t *testing.T) {
	var armed atomic.Bool
	n := start(t, func(c *loginnode.Config) {
		c.Session.Prepare = func(context.Context, *auth.Login) ([]string, func(), error) {
			if armed.CompareAndSwap(true, false) {
				panic("injected")
			}
			return nil, nil, nil
		}
	})
	c := n.login(n.ann())
	s, err := c.NewSession()
	n.must(err)
	in, err := s.StdinPipe()
	n.must(err)
	out, err := s.StdoutPipe()
	n.must(err)
	n.must(s.Start("cat"))
	armed.Store(true)
	broken, err := c.NewSession()
	n.must(err)
	if err := broken.Run("true"); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	_, err = io.WriteString(in, "alive\n")
	n.must(err)
	buf := make([]byte, 6)
	if _, err := io.ReadFull(out, buf); err != nil || string(buf) != "alive\n" {
		t.Errorf("the other session: %q, %v", buf, err)
	}
	if n.metric("berth_login_panics_total") != "1" {
		t.Error("the panic is not counted")
	}
}

// The same in another goroutine than that of the session's requests, where nothing else
// recovers from panics.
func TestS08DefectBesideTheRequests(t *testing.T) {
	var armed atomic.Bool
	n := start(t, func(c *loginnode.Config) {
		c.Now = func() time.Time {
			if armed.CompareAndSwap(true, false) {
				panic("injected")
			}
			return time.Now()
		}
	})
	c := n.login(n.ann())
	broken, err := c.NewSession()
	n.must(err)
	in, err := broken.StdinPipe()
	n.must(err)
	n.must(broken.Start("read x"))
	eventually.Holds(t, "the session", func() bool { return n.metric("berth_login_sessions") == "1" })
	armed.Store(true) // the end of the session reads the time next
	_, err = io.WriteString(in, "\n")
	n.must(err)
	_ = broken.Wait()
	eventually.Holds(t, "the panic is counted", func() bool { return n.metric("berth_login_panics_total") == "1" })
	if got := run(t, c, "echo alive"); got != "alive" {
		t.Errorf("another session: %q", got)
	}
}

// defective is an audit log that panics once, at its first event.
type defective struct {
	*records
	event atomic.Pointer[string] // nil: it works
}

func (d *defective) arm(event string) { d.event.Store(&event) }

func (d *defective) Write(p []byte) (int, error) {
	if e := d.event.Load(); e != nil && bytes.Contains(p, []byte(`"event":"`+*e+`"`)) && d.event.CompareAndSwap(e, nil) {
		panic("injected")
	}
	return d.records.Write(p)
}

// withDefects starts a node, and a session of bob's that must not be affected.
func withDefects(t *testing.T, change ...func(*loginnode.Config)) (n *node, log *defective, alive func(panics string)) {
	t.Helper()
	needRoot(t)
	log = &defective{records: &records{}}
	n = start(t, append(change, func(c *loginnode.Config) { c.Audit = log })...)
	s, err := n.login(n.bob()).NewSession()
	n.must(err)
	in, err := s.StdinPipe()
	n.must(err)
	out, err := s.StdoutPipe()
	n.must(err)
	n.must(s.Start("cat"))
	return n, log, func(panics string) {
		t.Helper()
		_, err := io.WriteString(in, "alive\n")
		n.must(err)
		buf := make([]byte, 6)
		if _, err := io.ReadFull(out, buf); err != nil || string(buf) != "alive\n" {
			t.Errorf("the other session: %q, %v", buf, err)
		}
		eventually.Holds(t, panics+" panics are counted", func() bool {
			return n.metric("berth_login_panics_total") == panics
		})
	}
}

func TestS08DefectWhileAPortIsOpened(t *testing.T) {
	n, log, alive := withDefects(t)
	c := n.login(n.ann())
	l := listenTCP(t)
	address := l.Addr().String()
	n.must(l.Close())
	log.arm("forward")
	if _, err := c.Listen("tcp", address); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	alive("1")
	again, err := c.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	again.Close()
	if got := run(t, c, "echo same connection"); got != "same connection" {
		t.Errorf("%q", got)
	}
}

func TestS08DefectWhileASocketIsOpened(t *testing.T) {
	n, log, alive := withDefects(t)
	c := n.login(n.ann())
	socket := n.ann().Home + "/s.sock"
	log.arm("forward")
	if _, err := c.ListenUnix(socket); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	alive("1")
	again, err := c.ListenUnix(socket)
	if err != nil {
		t.Fatalf("the socket is still there: %v", err)
	}
	again.Close()
}

func TestS08DefectWhileAConnectionIsForwarded(t *testing.T) {
	n, log, alive := withDefects(t)
	c := n.login(n.ann())
	l := listenTCP(t)
	defer l.Close()
	log.arm("forward")
	if _, err := c.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	alive("1")
	far, err := l.Accept()
	n.must(err)
	defer far.Close()
	n.must(far.SetReadDeadline(time.Now().Add(deadline)))
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the far end is still connected: %v", err)
	}
	counter(t, l)
	again, err := c.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("the same connection: %v", err)
	}
	again.Close()
}

// A panic while the login is recorded: the connection is closed, and no session is opened.
func TestS08DefectAtTheLogin(t *testing.T) {
	n, log, alive := withDefects(t)
	log.arm("login")
	if c, err := n.dial(n.ann().Name, n.ann().key); err == nil {
		if _, err := c.NewSession(); err == nil {
			t.Error("the request succeeded in spite of the panic")
		}
		_ = c.Wait() // the server closes it
	}
	alive("1")
	n.output(n.ann(), "true")
	eventually.Holds(t, "two connections, bob's and this", func() bool { return n.metric("berth_login_connections") == "2" })
}

// A panic while the start of a session is recorded: its process is killed, and a drain does not
// wait for it.
func TestS08DefectAtTheStartOfASession(t *testing.T) {
	n, log, alive := withDefects(t)
	c := n.login(n.ann())
	broken, err := c.NewSession()
	n.must(err)
	log.arm("session-start")
	if err := broken.Run("exec sleep 1000"); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	alive("1")
	if got := run(t, c, "echo same connection"); got != "same connection" {
		t.Errorf("%q", got)
	}
	eventually.Holds(t, "the end of the broken session", func() bool { return n.metric("berth_login_sessions") == "1" })
}

// The same where the session is passed on to a user's pod.
func TestS08DefectAtTheStartOfASessionInAPod(t *testing.T) {
	log := &defective{records: &records{}}
	n, _ := withPods(t, func(c *loginnode.Config) { c.Audit = log })
	c := n.login(n.ann())
	if got := run(t, c, "echo pod"); got != "pod" {
		t.Fatalf("%q", got)
	}
	broken, err := c.NewSession()
	n.must(err)
	log.arm("session-start")
	if err := broken.Run("exec sleep 1000"); err == nil {
		t.Error("the request succeeded in spite of the panic")
	}
	if got := run(t, c, "echo same connection"); got != "same connection" {
		t.Errorf("%q", got)
	}
	if got := n.metric("berth_login_panics_total"); got != "1" {
		t.Errorf("%s panics are counted, want 1", got)
	}
	eventually.Holds(t, "the end of the broken session", func() bool { return n.metric("berth_login_sessions") == "0" })
}
