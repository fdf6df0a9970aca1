package loginnode_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/daemon"
)

// pods runs users' pods without a cluster, as processes with the users' rights.
type pods struct {
	t      *testing.T
	dir    string
	secret []byte
	delay  chan struct{} // a start waits for it
	fail   error

	mu      sync.Mutex
	running map[string]*exec.Cmd // by user
	starts  int
	removed []string
}

// withPods starts a login node whose users have pods.
func withPods(t *testing.T, change ...func(*loginnode.Config)) (*node, *pods) {
	p := &pods{t: t, secret: []byte(strings.Repeat("secret", 8)), running: map[string]*exec.Cmd{}}
	n := start(t, append([]func(*loginnode.Config){func(c *loginnode.Config) {
		p.dir = filepath.Dir(c.RunDir)
		c.Pods = &loginnode.Pods{
			Start: p.start, Secret: p.secret,
			List:   func(context.Context) ([]*loginnode.Pod, error) { return nil, nil },
			Remove: func(_ context.Context, name string) error { p.removed = append(p.removed, name); return nil },
		}
		c.Identity = func(_ context.Context, u *auth.User) (*loginnode.Credential, error) {
			return &loginnode.Credential{Files: map[string]string{"token": "token of " + u.Name}, Env: []string{"TOKEN=%d/token"}}, nil
		}
	}}, change...)...)
	t.Cleanup(func() {
		n.server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, cmd := range p.running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return n, p
}

func (p *pods) start(ctx context.Context, u *auth.User, state func(string)) (*loginnode.Pod, error) {
	state("your login pod is starting")
	if p.delay != nil {
		select {
		case <-p.delay:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return nil, p.fail
	}
	p.starts++
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	name := "pod-" + u.Name + itoa(p.starts)
	run := filepath.Join(p.dir, name)
	if err := os.Mkdir(run, 0o700); err != nil {
		return nil, err
	}
	if isRoot() {
		if err := os.Chown(run, u.UID, u.GID); err != nil {
			return nil, err
		}
	}
	f := &daemon.File{Pods: &daemon.Pods{Port: port, RunDir: run}, Forwarding: daemon.Forwarding{Deny: []string{"127.0.0.66"}}}
	r, err := f.PodRequest(u, p.secret, true)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", daemon.PodCommand)
	for k, v := range r.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = asuser.Attributes(u.Rights())
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.running[u.Name] = cmd
	return &loginnode.Pod{Name: name, User: u.Name, UID: u.UID, Address: net.JoinHostPort("127.0.0.1", itoa(port))}, nil
}

// Clients can do the same in a pod as in the shared mode, and the process that serves them has no
// rights of root.
func TestSessionsRunInTheUsersPod(t *testing.T) {
	have(t, "ssh")
	n, p := withPods(t)
	out := stdout(t, n.ssh(n.ann(), "id -u; cat $TOKEN; echo; stat -c %a $TOKEN; grep CapEff /proc/self/status; echo $SSH_CONNECTION; exit 0"))
	f := strings.Fields(out)
	if len(f) != 11 || f[0] != itoa(n.ann().UID) || strings.Join(f[1:4], " ") != "token of ann" || f[4] != "600" || isRoot() && f[6] != "0000000000000000" {
		t.Fatalf("%q", out)
	}
	if f[7] != "127.0.0.1" || f[10] != n.port() {
		t.Errorf("the address of the client: %q", f[7:])
	}
	err := n.ssh(n.ann(), "kill -TERM $$").Run()
	var exit *exec.ExitError
	if !asError(err, &exit) || exit.ExitCode() != 255 {
		t.Errorf("ended by a signal: %v", err)
	}
	err = n.ssh(n.ann(), "exit 7").Run()
	if !asError(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit 7: %v", err)
	}
	text := strings.Repeat("0123456\r\n\x00", 1<<17)
	cmd := n.ssh(n.ann(), "cat")
	cmd.Stdin = strings.NewReader(text)
	if got, err := cmd.Output(); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(text), err)
	}
	if out, err := n.tool("ssh", n.ann(), "-tt", "-p", n.port(), "ann@127.0.0.1", "tty; stty size").CombinedOutput(); err != nil || !strings.Contains(string(out), "/dev/pts/") {
		t.Errorf("a terminal: %v, %q", err, out)
	}
	from := filepath.Join(n.dir, "from")
	n.must(os.WriteFile(from, []byte(text), 0o644))
	combined(t, n.tool("scp", n.ann(), "-P", n.port(), from, "ann@127.0.0.1:copy"))
	sameFile(t, from, filepath.Join(n.ann().Home, "copy"))
	if isRoot() {
		if out := stdout(t, n.ssh(n.bob(), "id -u")); strings.TrimSpace(out) != itoa(n.bob().UID) {
			t.Errorf("bob is %s", out)
		}
	}
	if p.starts != len(p.running) {
		t.Errorf("%d starts for %d users", p.starts, len(p.running))
	}
	starts := n.audit.find(t, "session-start")
	if len(starts) == 0 || starts[0].Command == "" || starts[0].User != "ann" {
		t.Errorf("audited: %+v", starts)
	}
	// The client may see the end before it is in the log.
	eventually.Holds(t, "an end for each start", func() bool { return len(n.audit.find(t, "session-end")) == len(starts) })
}

// -L, -D, -R and Unix sockets are the pod's, with the policy of the site.
func TestForwardingInAPod(t *testing.T) {
	n, _ := withPods(t)
	c := n.login(n.ann())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	defer l.Close()
	go answerOnce(l)
	conn, err := c.Dial("tcp", l.Addr().String())
	n.must(err)
	_, err = io.WriteString(conn, "ping")
	n.must(err)
	n.must(conn.(interface{ CloseWrite() error }).CloseWrite())
	if got, _ := io.ReadAll(conn); string(got) != "got ping" {
		t.Errorf("half-close: %q", got)
	}
	if _, err := c.Dial("tcp", "127.0.0.66:80"); err == nil || !strings.Contains(err.Error(), "prohibited") {
		t.Errorf("an address that the policy forbids: %v", err)
	}
	far, err := c.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	go answerOnce(far)
	back, err := net.Dial("tcp", far.Addr().String())
	n.must(err)
	_, err = io.WriteString(back, "pong")
	n.must(err)
	n.must(back.(*net.TCPConn).CloseWrite())
	if got, _ := io.ReadAll(back); string(got) != "got pong" {
		t.Errorf("-R: %q", got)
	}
	n.must(far.Close())
}

func answerOnce(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	got, _ := io.ReadAll(c)
	_, _ = io.WriteString(c, "got "+string(got))
}

// Restrictions of a key also apply in a pod.
func TestOptionsOfKeysHoldInPods(t *testing.T) {
	n, _ := withPods(t)
	key := string(ssh.MarshalAuthorizedKey(n.ann().key.PublicKey()))
	n.authorize(n.ann(), `command="echo forced",no-pty,permitopen="127.0.0.1:1" `+key)
	c := n.login(n.ann())
	if out := run(t, c, "echo free"); out != "forced" {
		t.Errorf("a forced command: %q", out)
	}
	s, err := c.NewSession()
	n.must(err)
	if s.RequestPty("xterm", 24, 80, nil) == nil {
		t.Error("no-pty does not prevent a terminal")
	}
	if _, err := c.Dial("tcp", "127.0.0.1:2"); err == nil || !strings.Contains(err.Error(), "prohibited") {
		t.Errorf("permitopen: %v", err)
	}
}

// While the pod starts, the client gets a message on its standard error, and nothing
// that it has sent in the meantime is lost.
func TestClientSeesThatThePodStarts(t *testing.T) {
	have(t, "ssh")
	n, p := withPods(t)
	p.delay = make(chan struct{})
	cmd := n.ssh(n.ann(), "cat")
	var out, errs lockedBuffer
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &errs, strings.NewReader("typed early")
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	eventually.Holds(t, "a line about the start", func() bool { return strings.Contains(errs.String(), "your login pod is starting") })
	close(p.delay)
	n.must(<-done)
	if out.String() != "typed early" {
		t.Errorf("%q", out.String())
	}
	if more := combined(t, n.ssh(n.ann(), "true")); more != "" {
		t.Errorf("while the pod runs: %q", more)
	}
}

// If a pod cannot be created, that login fails with a message to the client and the
// reason in the log; the next login tries again.
func TestPodThatCannotStart(t *testing.T) {
	n, p := withPods(t)
	p.fail = errors.New("quota exceeded: secret details")
	s, err := n.login(n.ann()).NewSession()
	n.must(err)
	out, err := s.CombinedOutput("true")
	if err == nil || !strings.Contains(string(out), "cannot be started") || strings.Contains(string(out), "secret details") {
		t.Errorf("%v: %q", err, out)
	}
	p.mu.Lock()
	p.fail = nil
	p.mu.Unlock()
	if out := n.output(n.ann(), "echo well"); out != "well" {
		t.Errorf("the next login: %q", out)
	}
}

// A pod accepts only its gateway, whatever key of the user's or of another pod's a
// client has, and it serves nothing before it knows for which user.
func TestPodAcceptsItsGatewayOnly(t *testing.T) {
	n, p := withPods(t)
	u := n.ann().User
	pod, err := p.start(t.Context(), u, func(string) {})
	n.must(err)
	gateway, host, err := loginnode.PodKeys(p.secret, u.UID)
	n.must(err)
	other, _, err := loginnode.PodKeys(p.secret, u.UID+1)
	n.must(err)
	hostKey, err := ssh.NewPublicKey(host.Public())
	n.must(err)
	dial := func(user string, s ssh.Signer) (*ssh.Client, error) {
		return ssh.Dial("tcp", pod.Address, &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(s)}, HostKeyCallback: ssh.FixedHostKey(hostKey), Timeout: deadline,
		})
	}
	right, err := ssh.NewSignerFromKey(gateway)
	n.must(err)
	wrong, err := ssh.NewSignerFromKey(other)
	n.must(err)
	var c *ssh.Client
	eventually.Holds(t, "the pod answers", func() bool { c, err = dial("ann", right); return err == nil })
	defer c.Close()
	for name, try := range map[string]struct {
		user string
		key  ssh.Signer
	}{"the user's key": {"ann", n.ann().key}, "another pod's": {"ann", wrong}, "the host's": {"ann", n.host}, "another user": {"root", right}} {
		if _, err := dial(try.user, try.key); err == nil {
			t.Errorf("%s: the login succeeded", name)
		}
	}
	if _, err := c.NewSession(); err == nil {
		t.Error("a session before the admission")
	}
	if ok, _, _ := c.SendRequest("tcpip-forward", true, ssh.Marshal(struct {
		Host string
		Port uint32
	}{"127.0.0.1", 0})); ok {
		t.Error("a forwarding before the admission")
	}
	for _, payload := range []string{"", "{", `{"From":"nonsense"}`, "null x"} {
		if ok, _, err := c.SendRequest("admit@berth.hpc", true, []byte(payload)); ok || err != nil {
			t.Errorf("admitted by %q (%v)", payload, err)
		}
	}
	if ok, _, _ := c.SendRequest("admit@berth.hpc", true, []byte("{}")); !ok {
		t.Error("not admitted")
	}
	if ok, _, _ := c.SendRequest("admit@berth.hpc", true, []byte(`{"Options":{"NoPTY":false}}`)); ok {
		t.Error("admitted twice")
	}
	if _, err := c.NewSession(); err != nil {
		t.Errorf("a session after it: %v", err)
	}
	// A client of the gateway cannot send these requests.
	client := n.login(n.ann())
	for _, name := range []string{"admit@berth.hpc", "credential@berth.hpc", "retire@berth.hpc"} {
		if ok, _, err := client.SendRequest(name, true, []byte(`{"Idle":1}`)); ok || err != nil {
			t.Errorf("%s of a client: %v, %v", name, ok, err)
		}
	}
}

// An idle pod is deleted, one with a session stays, and the next login gets a new one.
func TestIdlePodsAreDeleted(t *testing.T) {
	n, p := withPods(t, func(c *loginnode.Config) {
		c.Pods.Idle, c.Pods.Poll = 300*time.Millisecond, 20*time.Millisecond
	})
	c := n.login(n.ann())
	if out := run(t, c, "echo here"); out != "here" {
		t.Fatal(out)
	}
	// On a slow machine a pod may have been deleted before the connection.
	p.mu.Lock()
	first, starts := p.running["ann"], p.starts
	p.mu.Unlock()
	// The connection alone keeps it, over many polls.
	for range 60 {
		time.Sleep(10 * time.Millisecond)
		if out := run(t, c, "echo still"); out != "still" {
			t.Fatal(out)
		}
	}
	c.Close()
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the pod's server: %v", err)
		}
	case <-time.After(deadline):
		t.Fatal("the idle pod was not deleted")
	}
	eventually.Holds(t, "an audit record", func() bool { return len(n.audit.find(t, "pod-retired")) == starts })
	if out := n.output(n.ann(), "echo again"); out != "again" || p.starts <= starts {
		t.Errorf("%q with %d starts, %d before", out, p.starts, starts)
	}
}

// A pod that dies ends its connections, and the next login gets a new one.
func TestPodThatFails(t *testing.T) {
	n, p := withPods(t)
	c := n.login(n.ann())
	run(t, c, "true")
	p.mu.Lock()
	first := p.running["ann"]
	p.mu.Unlock()
	n.must(first.Process.Kill())
	_ = c.Wait() // the client notices it
	_ = first.Wait()
	if out := n.output(n.ann(), "echo again"); out != "again" {
		t.Errorf("%q", out)
	}
}
