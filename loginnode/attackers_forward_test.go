package loginnode_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/forward"
)

// counter is a server that answers, after the end of its input, with the number of
// bytes.
func counter(t testing.TB, l net.Listener) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				fmt.Fprintf(c, "got %d", n)
			}()
		}
	}()
}

func listenTCP(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestS11HalfCloseIsKept(t *testing.T) {
	n := start(t)
	l := listenTCP(t)
	counter(t, l)
	conn, err := n.login(n.ann()).Dial("tcp", l.Addr().String())
	n.must(err)
	_, err = io.WriteString(conn, "12345")
	n.must(err)
	n.must(conn.(interface{ CloseWrite() error }).CloseWrite())
	if got, err := io.ReadAll(conn); err != nil || string(got) != "got 5" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestS11ForbiddenDestinations(t *testing.T) {
	own := listenTCP(t)
	counter(t, own)
	n := start(t, func(c *loginnode.Config) {
		r, err := forward.ParseRule(own.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Policy.Deny = r
		c.Policy.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			return map[string][]netip.Addr{
				"rebind.example": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")},
				"mapped.example": {netip.MustParseAddr("::ffff:169.254.169.254")},
			}[host], nil
		}
	})
	_, port, _ := net.SplitHostPort(own.Addr().String())
	c := n.login(n.ann())
	for _, target := range []string{
		"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[::ffff:127.0.0.1]:" + port, "127.0.0.1:" + port,
		"127.0.0.1:10250", "192.0.2.1:2379", "0.0.0.0:22", "[::]:22", "rebind.example:80", "mapped.example:80", "[fe80::1]:80",
		"100.100.100.200:80", "168.63.129.16:80", "[64:ff9b::a9fe:a9fe]:80",
	} {
		_, err := c.Dial("tcp", target)
		var open *ssh.OpenChannelError
		if !asError(err, &open) || open.Reason != ssh.Prohibited {
			t.Errorf("%s: %v", target, err)
		}
	}
	for _, name := range []string{"no.such.example", "a b"} {
		if _, err := c.Dial("tcp", name+":80"); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
	if f := n.audit.find(t, "forward"); len(f) != 16 || f[0].Target != "169.254.169.254:80" || f[0].Reason == "" {
		t.Errorf("audit: %d, %+v", len(f), f[0])
	}
}

func TestS11ListenersAreOfTheUserAndOnLoopback(t *testing.T) {
	n := start(t)
	one, other := n.login(n.ann()), n.login(n.ann())
	l, err := one.Listen("tcp", "0.0.0.0:0")
	n.must(err)
	port := l.Addr().(*net.TCPAddr).Port
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			ip, ok := a.(*net.IPNet)
			if !ok || ip.IP.IsLoopback() || ip.IP.IsLinkLocalUnicast() {
				continue
			}
			if c, err := net.Dial("tcp", net.JoinHostPort(ip.IP.String(), itoa(port))); err == nil {
				c.Close()
				t.Errorf("the listener is reachable on %s", ip.IP)
			}
		}
	}
	// Another connection, even of the same user, can neither use the port nor cancel the forwarding.
	type request struct {
		Host string
		Port uint32
	}
	for _, kind := range []string{"cancel-tcpip-forward", "tcpip-forward"} {
		for _, host := range []string{"0.0.0.0", "127.0.0.1", ""} {
			if ok, _, err := other.SendRequest(kind, true, ssh.Marshal(request{host, uint32(port)})); err != nil || ok {
				t.Errorf("another connection: %s of %q: %v, %v", kind, host, ok, err)
			}
		}
	}
	if _, err := other.Listen("tcp", "127.0.0.1:80"); err == nil {
		t.Error("a privileged port was opened")
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			data, _ := io.ReadAll(c)
			fmt.Fprintf(c, "got %d", len(data))
			c.Close()
		}
	}()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(port)))
	n.must(err)
	defer c.Close()
	_, err = io.WriteString(c, "abc")
	n.must(err)
	n.must(c.(*net.TCPConn).CloseWrite())
	if got, err := io.ReadAll(c); err != nil || string(got) != "got 3" {
		t.Errorf("through the listener: %q, %v", got, err)
	}
	n.must(l.Close())
	eventually.Holds(t, "the listener is closed", func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(port)))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	l, err = one.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	one.Close()
	eventually.Holds(t, "the listener is closed with its connection", func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

func TestS11UnixSocketsAreOpenedAsTheUser(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	mine := filepath.Join(n.ann().Home, "s")
	l, err := c.ListenUnix(mine)
	n.must(err)
	st, err := os.Stat(mine)
	n.must(err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			data, _ := io.ReadAll(c)
			fmt.Fprintf(c, "got %d", len(data))
			c.Close()
		}
	}()
	conn, err := c.Dial("unix", mine)
	n.must(err)
	_, err = io.WriteString(conn, "1234")
	n.must(err)
	n.must(conn.(interface{ CloseWrite() error }).CloseWrite())
	if got, err := io.ReadAll(conn); err != nil || string(got) != "got 4" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := c.ListenUnix(mine); err == nil {
		t.Error("an existing socket was replaced")
	}
	for _, path := range []string{"relative", "/tmp/../etc/x", "\x00abstract", "/" + strings.Repeat("x", 200)} {
		if _, err := c.ListenUnix(path); err == nil {
			t.Errorf("%q: listens", path)
		}
	}
	n.must(l.Close())
	eventually.Holds(t, "the socket is removed", func() bool { _, err := os.Lstat(mine); return err != nil })
	if !isRoot() {
		return
	}
	if _, err := c.ListenUnix(filepath.Join(n.dir, "notmine")); err == nil {
		t.Error("a socket in a directory of root's")
	}
	private := filepath.Join(n.dir, "roots.sock")
	rl, err := net.Listen("unix", private)
	n.must(err)
	counter(t, rl)
	n.must(os.Chmod(private, 0o600))
	if _, err := c.Dial("unix", private); err == nil {
		t.Error("connected to root's socket")
	}
	// Nor can eve connect to ann's forwarded socket.
	l, err = c.ListenUnix(mine)
	n.must(err)
	defer l.Close()
	if _, err := n.login(n.eve()).Dial("unix", mine); err == nil {
		t.Error("connected to another user's socket")
	}
}

func TestS14AgentForwarding(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	keys := agent.NewKeyring()
	n.must(agent.ForwardToAgent(c, keys))
	s, err := c.NewSession()
	n.must(err)
	n.must(agent.RequestAgentForwarding(s))
	out, err := s.Output(`stat -c '%u %a %F' "$SSH_AUTH_SOCK" "$(dirname "$SSH_AUTH_SOCK")"; echo "$SSH_AUTH_SOCK"; command -v ssh-add >/dev/null && ssh-add -l`)
	text := string(out)
	uid := itoa(n.ann().UID)
	if !strings.HasPrefix(text, uid+" 600 socket\n"+uid+" 700 directory\n") {
		t.Fatalf("%q, %v", text, err)
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) > 3 && !strings.Contains(lines[3], "no identities") {
		t.Errorf("the agent: %q", lines[3])
	}
	socket := strings.Split(text, "\n")[2]
	eventually.Holds(t, "the socket is removed", func() bool { _, err := os.Lstat(filepath.Dir(socket)); return os.IsNotExist(err) })
	if got := run(t, c, "echo $SSH_AUTH_SOCK"); got != "" {
		t.Errorf("another session has %s", got)
	}
	if !isRoot() {
		return
	}
	s, err = c.NewSession()
	n.must(err)
	n.must(agent.RequestAgentForwarding(s))
	pipe, err := s.StdoutPipe()
	n.must(err)
	n.must(s.Start("echo $SSH_AUTH_SOCK; sleep 1000"))
	_, err = fmt.Fscan(pipe, &socket)
	n.must(err)
	if _, err := n.login(n.eve()).Dial("unix", socket); err == nil {
		t.Error("eve can connect to ann's agent")
	}
	if got := n.output(n.eve(), "cat "+filepath.Dir(socket)+"/* 2>/dev/null; ls "+filepath.Dir(socket)+" 2>/dev/null || echo closed"); got != "closed" {
		t.Errorf("eve sees %q of ann's agent", got)
	}
	n.authorize(n.ann(), "no-agent-forwarding "+string(ssh.MarshalAuthorizedKey(n.ann().key.PublicKey())))
	s, err = n.login(n.ann()).NewSession()
	n.must(err)
	if err := agent.RequestAgentForwarding(s); err == nil {
		t.Error("no-agent-forwarding does not prevent it")
	}
}

func TestManyFlowsAtOnce(t *testing.T) {
	n := start(t)
	l := listenTCP(t)
	counter(t, l)
	c := n.login(n.ann())
	const flows, size = 200, 100 << 10
	results := make(chan string, flows)
	for range flows {
		go func() {
			conn, err := c.Dial("tcp", l.Addr().String())
			if err != nil {
				results <- err.Error()
				return
			}
			defer conn.Close()
			if _, err := conn.Write(make([]byte, size)); err != nil {
				results <- err.Error()
				return
			}
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			data, _ := io.ReadAll(conn)
			results <- string(data)
		}()
	}
	for range flows {
		if got := <-results; got != fmt.Sprintf("got %d", size) {
			t.Fatal(got)
		}
	}
}
