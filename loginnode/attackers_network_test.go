package loginnode_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/limit"
)

func TestS19UnknownUserLooksLikeKnownUser(t *testing.T) {
	n := start(t)
	refusal := func(name string) string {
		_, err := n.dial(name, newKey(t))
		if err == nil {
			t.Fatalf("%s could log in", name)
		}
		return err.Error()
	}
	known := refusal("ann")
	for _, name := range []string{"nobody-knows", "root", "../../etc", "a b", strings.Repeat("x", 200), ""} {
		if got := refusal(name); got != known {
			t.Errorf("%q: %s; ann: %s", name, got, known)
		}
	}
}

func TestS17OnlyProxiesAreBelieved(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.ProxyFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	via := func(header string) (*ssh.Client, error) {
		conn := dialRaw(t, n.addr)
		if _, err := io.WriteString(conn, header); err != nil {
			return nil, err
		}
		c, chans, reqs, err := ssh.NewClientConn(conn, n.addr, &ssh.ClientConfig{
			User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			conn.Close()
			return nil, err
		}
		return ssh.NewClient(c, chans, reqs), nil
	}
	c, err := via("PROXY TCP4 192.0.2.9 127.0.0.1 4711 22\r\n")
	n.must(err)
	defer c.Close()
	if got := run(t, c, "echo $SSH_CLIENT"); !strings.HasPrefix(got, "192.0.2.9 4711 ") {
		t.Errorf("SSH_CLIENT: %q", got)
	}
	for _, header := range []string{"", "PROXY nonsense\r\n", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x01x"} {
		if c, err := via(header); err == nil {
			c.Close()
			t.Errorf("header %q from a proxy: the login succeeded", header)
		}
	}
	// From any other address it is only a malformed greeting, whether or not proxies are configured.
	for _, proxies := range [][]netip.Prefix{nil, {netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.2/32")}} {
		n = start(t, func(c *loginnode.Config) { c.ProxyFrom = proxies })
		notBelieved(t, via)
		if got := n.output(n.ann(), "echo $SSH_CLIENT"); !strings.HasPrefix(got, "127.0.0.1 ") {
			t.Errorf("without a header: %q", got)
		}
	}
}

func notBelieved(t *testing.T, via func(string) (*ssh.Client, error)) {
	t.Helper()
	if c, err := via("PROXY TCP4 192.0.2.9 127.0.0.1 4711 22\r\n"); err == nil {
		defer c.Close()
		if got := run(t, c, "echo $SSH_CLIENT"); !strings.HasPrefix(got, "127.0.0.1 ") {
			t.Errorf("SSH_CLIENT: %q", got)
		}
	}
}

func TestS06SilentPeersAreDroppedAndCounted(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.LoginGrace = 2 * time.Second
		c.Startups = limit.Startups{Begin: 50, Rate: 100, Full: 50, PerSource: 1000}
	})
	var open sync.WaitGroup
	closed := make(chan int, 100)
	for i := range 100 {
		conn := dialRaw(t, n.addr)
		open.Add(1)
		go func() {
			defer open.Done()
			defer conn.Close()
			switch i % 3 { // silent; a greeting only; half a key exchange
			case 1:
				_, _ = io.WriteString(conn, "SSH-2.0-slow\r\n")
			case 2:
				_, _ = io.WriteString(conn, "SSH-2.0-slow\r\n\x00\x00\x0f\xff\x04\x14")
			}
			_ = conn.SetReadDeadline(time.Now().Add(deadline))
			_, err := io.Copy(io.Discard, conn)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				closed <- i
			}
		}()
	}
	open.Wait()
	if len(closed) != 100 {
		t.Errorf("%d of 100 were closed", len(closed))
	}
	eventually.Holds(t, "50 are refused at once", func() bool {
		refused := n.audit.find(t, "refused")
		return len(refused) == 50 && refused[0].Reason == "startups"
	})
	if got := n.output(n.ann(), "echo in"); got != "in" {
		t.Error(got)
	}
}

func TestPenaltiesKeepASourceOut(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.Penalties = limit.Penalties{AuthFail: 10 * time.Second, Min: 15 * time.Second, Max: time.Minute}
	})
	for range 2 {
		if _, err := n.dial("ann", newKey(t)); err == nil {
			t.Fatal("the login succeeded")
		}
	}
	n.noneEarly()
	if _, err := n.dial("ann", n.ann().key); err == nil {
		t.Error("the login succeeded during a penalty")
	}
	eventually.Holds(t, "the audit record", func() bool {
		r := n.audit.find(t, "refused")
		return len(r) == 1 && r[0].Reason == "penalty"
	})
}

// A client that caused a panic before the login is delayed, and no other.
func TestDefectBeforeTheLoginIsAPenalty(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.Penalties = limit.Penalties{}
		inner := c.Auth.Users
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			if name == "defect" {
				panic("injected")
			}
			return inner.Lookup(ctx, name)
		})
	})
	if _, err := n.dial("defect", n.ann().key); err == nil {
		t.Fatal("the login succeeded")
	}
	n.noneEarly()
	if _, err := n.dial("ann", n.ann().key); err == nil {
		t.Error("the address is not penalised")
	}
	eventually.Holds(t, "the audit record", func() bool {
		r := n.audit.find(t, "refused")
		return len(r) == 1 && r[0].Reason == "penalty"
	})
	if n.metric("berth_login_panics_total") != "1" {
		t.Error("the panic is not counted")
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.Dial("tcp", n.addr)
	n.must(err)
	defer conn.Close()
	c, chans, reqs, err := ssh.NewClientConn(conn, n.addr, &ssh.ClientConfig{
		User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	n.must(err)
	if got := run(t, ssh.NewClient(c, chans, reqs), "echo in"); got != "in" {
		t.Errorf("another address: %q", got)
	}
}

// Many clients do not log in, in several ways: another user can log in all the time, all of
// the clients are disconnected, and no resources remain in use.
func TestS06AttackBeforeTheLogin(t *testing.T) {
	peers := 200
	if os.Getenv("BERTH_TEST_FULL") != "" {
		peers = 2000
	}
	n := start(t, func(c *loginnode.Config) {
		c.LoginGrace = 3 * time.Second
		c.Startups = limit.Startups{Begin: 5000, Rate: 100, Full: 5000, PerSource: peers / 2}
	})
	files := openFiles(t)
	took := figures(t, itoa(peers)+" peers that never log in")
	var all sync.WaitGroup
	for i := range peers {
		all.Add(1)
		go func() {
			defer all.Done()
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			conn, err := d.Dial("tcp", n.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(deadline))
			go pester(conn, i%4)
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
	slowest, count := time.Duration(0), 0
	gone := make(chan bool)
	go func() { all.Wait(); close(gone) }()
	for in := 0; ; in++ {
		at := time.Now()
		c, err := n.dial("ann", n.ann().key)
		if err != nil {
			t.Fatalf("login %d: %v", in, err)
		}
		if got := run(t, c, "echo in"); got != "in" {
			t.Fatalf("login %d: %q", in, got)
		}
		slowest, count = max(slowest, time.Since(at)), count+1
		c.Close()
		select {
		case <-gone:
		default:
			continue
		}
		break
	}
	eventually.Holds(t, "the connections of the peers are closed", func() bool { return openFiles(t) <= files+20 })
	eventually.Holds(t, "no connection that has not logged in is counted any more", func() bool {
		return n.metric("berth_login_early_connections") == "0"
	})
	t.Logf("%d logins meanwhile, the slowest in %v", count, slowest)
	took()
}

// pester keeps a connection open without logging in: it sends nothing, only a greeting, half
// of a key exchange, or a byte every 200 ms.
func pester(conn net.Conn, how int) {
	switch how {
	case 1:
		_, _ = io.WriteString(conn, "SSH-2.0-slow\r\n")
	case 2:
		_, _ = io.WriteString(conn, "SSH-2.0-slow\r\n\x00\x00\x0f\xff\x04\x14")
	case 3:
		for _, b := range []byte("SSH-2.0-very_slow_indeed_but_never_silent\r\n") {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
