package loginnode_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/session"
)

// withNodes is a login node of a cluster with the nodes c1 and c2; ann has a
// job on c1, where programs run like here, but with IN_JOB set.
func withNodes(t *testing.T, change ...func(*loginnode.Config)) *node {
	return start(t, append(change, func(c *loginnode.Config) {
		c.Nodes = &loginnode.Nodes{
			Has: func(name string) bool { return name == "c1" || name == "c2" },
			Place: func(_ context.Context, u *auth.User, name string) (*loginnode.Place, error) {
				if name != "c1" || u.Name != "ann" {
					return nil, nil
				}
				return &loginnode.Place{
					Job: 77, Address: netip.MustParseAddr("127.0.0.1"),
					Inside: session.Inside{Command: []string{"env", "IN_JOB=77", "NAMES=%E", "TTY=false"}, Terminal: []string{"TTY=true"}},
				}, nil
			},
		}
	})...)
}

// jump writes a configuration of OpenSSH's client in which the nodes are
// reached through the login node, and returns a command that uses it.
func (n *node) jump(p *person, program string, args ...string) *exec.Cmd {
	n.t.Helper()
	config := filepath.Join(n.dir, "config-"+p.Name)
	known := filepath.Join(n.dir, "known_hosts")
	n.must(os.WriteFile(known, []byte("* "+string(ssh.MarshalAuthorizedKey(n.host.PublicKey()))), 0o644))
	n.must(os.WriteFile(config, []byte(`
Host *
  User `+p.Name+`
  IdentityFile `+p.keyFile+`
  IdentitiesOnly yes
  UserKnownHostsFile `+known+`
  StrictHostKeyChecking yes
  BatchMode yes
Host login
  HostName 127.0.0.1
  Port `+n.port()+`
Host c1 c2 elsewhere
  ProxyJump login
`), 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{"-F", config}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func combined(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// stdout returns the stdout of the command, which must succeed.
func stdout(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, &output)
	}
	return string(out)
}

// With OpenSSH's clients: a command, its exit code, a terminal, files.
func TestNodeOfOwnJobIsReachedThroughTheLoginNode(t *testing.T) {
	have(t, "ssh", "scp", "sftp")
	n := withNodes(t)
	out := combined(t, n.jump(n.ann(), "ssh", "c1", "echo $IN_JOB $TTY; id -u; echo $NAMES"))
	f := strings.Fields(out)
	if len(f) != 4 || f[0] != "77" || f[1] != "false" || f[2] != itoa(n.ann().UID) {
		t.Errorf("a command: %q", out)
	}
	if names := "," + f[3] + ","; !strings.Contains(names, ",HOME,") || strings.Contains(names, "KUBECONFIG") || strings.Contains(names, "SSH_AUTH_SOCK") {
		t.Errorf("the job gets %s", names)
	}
	err := n.jump(n.ann(), "ssh", "c1", "exit 7").Run()
	var exit *exec.ExitError
	if !asError(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit 7: %v", err)
	}
	if out := combined(t, n.jump(n.ann(), "ssh", "-tt", "c1", "echo $TTY; stty size")); !strings.Contains(out, "true") {
		t.Errorf("with a terminal: %q", out)
	}
	from := filepath.Join(n.dir, "from")
	n.must(os.WriteFile(from, bytes.Repeat([]byte("0123456\r\n\x00"), 1<<16), 0o644))
	if sftpServer() != "" {
		combined(t, n.jump(n.ann(), "scp", from, "c1:copy"))
		sameFile(t, from, filepath.Join(n.ann().Home, "copy"))
	}
	combined(t, n.jump(n.ann(), "scp", "-O", from, "c1:old-copy"))
	sameFile(t, from, filepath.Join(n.ann().Home, "old-copy"))
	for _, r := range n.audit.find(t, "session-start") {
		if r.Node != "c1" || r.Job != 77 || r.Through == "" || r.User != "ann" {
			t.Errorf("audited as %+v", r)
		}
	}
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x, err1 := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	if err1 != nil || err2 != nil || !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ (%d and %d bytes, %v, %v)", a, b, len(x), len(y), err1, err2)
	}
}

// Without a job on the node the message is pam_slurm_adopt's, and no session starts.
func TestNodeWithoutJobIsClosed(t *testing.T) {
	have(t, "ssh")
	n := withNodes(t)
	out, err := n.jump(n.ann(), "ssh", "c2", "echo let in").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Access denied by Berth: you have no active jobs on this node") || strings.Contains(string(out), "the login succeeded") {
		t.Errorf("%v: %s", err, out)
	}
	if len(n.audit.find(t, "session-start")) != 0 {
		t.Error("a session has started")
	}
	c := n.login(n.ann())
	for _, to := range []string{"c2:8080", "c2:2222"} {
		if _, err := c.Dial("tcp", to); err == nil || !strings.Contains(err.Error(), "no active jobs") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if !isRoot() {
		return
	}
	out, err = n.jump(n.bob(), "ssh", "c1", "echo let in").CombinedOutput()
	if err == nil || strings.Contains(string(out), "the login succeeded") {
		t.Errorf("on the node of ann's job: %v: %s", err, out)
	}
}

// inner logs in to a node within a connection.
func inner(c *ssh.Client, n *node, user string, keys ...ssh.Signer) (*ssh.Client, error) {
	conn, err := c.Dial("tcp", "c1:22")
	if err != nil {
		return nil, err
	}
	sc, chans, reqs, err := ssh.NewClientConn(conn, "c1:22", &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)}, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
	})
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(sc, chans, reqs), nil
}

// Only the user of the outer connection reaches the node, with one of that user's keys
// and its restrictions.
func TestConnectionToNodeIsOfTheUserOnly(t *testing.T) {
	needRoot(t)
	n := withNodes(t)
	ann, bob := n.login(n.ann()), n.login(n.bob())
	if c, err := inner(bob, n, "ann", n.ann().key); err == nil {
		t.Errorf("through bob's connection with ann's key: %s", run(t, c, "id"))
	}
	if c, err := inner(ann, n, "ann", n.bob().key); err == nil {
		t.Errorf("with bob's key: %s", run(t, c, "id"))
	}
	if c, err := inner(ann, n, "bob", n.bob().key); err == nil {
		t.Errorf("as bob: %s", run(t, c, "id"))
	}
	key := string(ssh.MarshalAuthorizedKey(n.ann().key.PublicKey()))
	n.authorize(n.ann(), `command="echo forced $IN_JOB" `+key)
	c, err := inner(ann, n, "ann", n.ann().key)
	n.must(err)
	if out := run(t, c, "echo free"); out != "forced 77" {
		t.Errorf("a forced command: %q", out)
	}
	for _, options := range []string{"restrict ", `permitopen="c1:80" `, "no-port-forwarding "} {
		n.authorize(n.ann(), options+key)
		if _, err := n.login(n.ann()).Dial("tcp", "c1:22"); err == nil {
			t.Errorf("%s: connected", options)
		}
	}
}

// A client can connect to listeners on the node of its job. It cannot listen on the login node
// by way of a node, nor forward sockets.
func TestForwardingToANode(t *testing.T) {
	n := withNodes(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "served")
			c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	n.must(err)
	outer := n.login(n.ann())
	within, err := inner(outer, n, "ann", n.ann().key)
	n.must(err)
	defer within.Close()
	for where, c := range map[string]*ssh.Client{"c1": outer, "localhost": within} {
		conn, err := c.Dial("tcp", net.JoinHostPort(where, port))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if got, _ := io.ReadAll(conn); string(got) != "served" {
			t.Errorf("%s: %q", where, got)
		}
	}
	if _, err := within.Dial("tcp", "192.0.2.1:80"); err == nil {
		t.Error("elsewhere from a node: connected")
	}
	if _, err := within.Dial("unix", filepath.Join(n.dir, "s")); err == nil {
		t.Error("a socket: connected")
	}
	if l, err := within.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("-R: accepted")
	}
	if l, err := within.ListenUnix(filepath.Join(n.ann().Home, "s")); err == nil {
		l.Close()
		t.Error("-R of a socket: accepted")
	}
}

// A drain waits for users on a node, and the end of the outer connection ends it.
func TestSessionsOnNodesEndWithTheirConnection(t *testing.T) {
	n := withNodes(t)
	outer := n.login(n.ann())
	within, err := inner(outer, n, "ann", n.ann().key)
	n.must(err)
	s, err := within.NewSession()
	n.must(err)
	out, err := s.StdoutPipe()
	n.must(err)
	n.must(s.Start("echo ready; exec sleep 1000"))
	_, err = io.ReadFull(out, make([]byte, 6))
	n.must(err)
	drained := make(chan bool)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { n.server.Drain(ctx, "end"); close(drained) }()
	eventually.Holds(t, "the server drains", func() bool { return !n.server.Ready() })
	if _, _, err := within.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("the drain has cut the connection: %v", err)
	}
	outer.Close()
	eventually.Holds(t, "the session's end", func() bool { return len(n.audit.find(t, "session-end")) == 1 })
	<-drained
}
