package loginnode_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/injob"
	"github.com/berth-hpc/berth/loginnode/session"
)

// network starts a process in a network namespace of its own, as a user's job has, with a server
// on its loopback. Listeners on the login node's loopback are not reachable from there.
func network(t *testing.T, n *node, p *person) (pid string) {
	t.Helper()
	have(t, "unshare", "nsenter", "ip", "python3", "curl")
	s, err := n.login(p).NewSession()
	n.must(err)
	out, err := s.StdoutPipe()
	n.must(err)
	var errs lockedBuffer
	s.Stderr = &errs
	n.must(s.Start(`exec unshare -Urn sh -c 'ip link set lo up && echo $$ && echo "of ` + p.Name + `" > served && exec python3 -m http.server --bind 127.0.0.1 8888 >/dev/null 2>&1'`))
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Skipf("users cannot create network namespaces on this machine: %s", errs.String())
	}
	return pid
}

// connector returns a command line that connects into a job: a copy of this program that users can
// run.
func connector(t *testing.T, c *loginnode.Config) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(c.RunDir), "connect")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exectest.Write(t, program, string(text))
	return program + " " + injob.Arg
}

// -L to localhost of a job reaches the job's own loopback, and neither the
// login node's nor that of another user's job.
func TestLocalhostOfAJobIsTheJobsOwn(t *testing.T) {
	needRoot(t)
	pids := map[string]string{}
	n := start(t, func(c *loginnode.Config) {
		connect := connector(t, c)
		c.Nodes = &loginnode.Nodes{
			Has: func(name string) bool { return name == "c1" || name == "c2" },
			Place: func(_ context.Context, u *auth.User, name string) (*loginnode.Place, error) {
				if map[string]string{"ann": "c1", "bob": "c2"}[u.Name] != name {
					return nil, nil
				}
				return &loginnode.Place{Job: 77, Inside: session.Inside{
					Command: []string{"nsenter", "--preserve-credentials", "-U", "-n", "-t", pids[u.Name]}, Connect: connect,
				}}, nil
			},
		}
	})
	for _, p := range []*person{n.ann(), n.bob()} {
		pids[p.Name] = network(t, n, p)
	}
	here := listenTCP(t) // on the login node's loopback
	counter(t, here)
	_, port, _ := net.SplitHostPort(here.Addr().String())
	free := listenTCP(t)
	local := free.Addr().String()
	free.Close()
	cmd := n.jump(n.ann(), "ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-L", local+":localhost:8888", "c1")
	n.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	eventually.Holds(t, "the job's page", func() bool {
		out, _ := exec.Command("curl", "-sS", "--max-time", "20", "http://"+local+"/served").CombinedOutput()
		return string(out) == "of ann\n"
	})
	within, err := inner(n.login(n.ann()), n, "ann", n.ann().key)
	n.must(err)
	defer within.Close()
	for _, host := range []string{"localhost", "127.0.0.1", "LOCALHOST", "::1"} {
		if _, err := within.Dial("tcp", net.JoinHostPort(host, port)); err == nil || !strings.Contains(err.Error(), "Connection refused") {
			t.Errorf("%s: a port of the login node: %v", host, err)
		}
	}
	for _, to := range []string{"127.0.0.2:8888", "c2:8888", "169.254.169.254:80", n.addr} {
		if to == n.addr {
			_, p, _ := net.SplitHostPort(n.addr)
			to = "127.0.0.1:" + p
		}
		if _, err := within.Dial("tcp", to); err == nil {
			t.Errorf("%s: connected", to)
		}
	}
	if out, err := n.jump(n.ann(), "ssh", "-W", "localhost:8888", "c2").CombinedOutput(); err == nil || !strings.Contains(string(out), "no active jobs") {
		t.Errorf("bob's job: %v: %s", err, out)
	}
	for options, want := range map[string]bool{`permitopen="c1:22",permitopen="localhost:8888" `: true, `permitopen="c1:22",permitopen="localhost:8889" `: false, `command="false" `: true} {
		n.authorize(n.ann(), options+string(ssh.MarshalAuthorizedKey(n.ann().key.PublicKey())))
		bound, err := inner(n.login(n.ann()), n, "ann", n.ann().key)
		n.must(err)
		if _, err := bound.Dial("tcp", "localhost:8888"); (err == nil) != want {
			t.Errorf("%s: %v", options, err)
		}
		bound.Close()
	}
	eventually.Holds(t, "the programs of closed connections to end", func() bool {
		out, _ := exec.Command("pgrep", "-u", itoa(n.ann().UID), "-f", injob.Arg+" 888").Output()
		return len(strings.Fields(string(out))) <= 1 // that of the client that still runs, if it holds one
	})
}

// Connections to the nodes of a user's jobs go through the user's pod.
func TestNodesThroughAPod(t *testing.T) {
	n, _ := withPods(t, func(c *loginnode.Config) {
		connect := `test "$IN_JOB" = 77 && exec ` + connector(t, c)
		c.Nodes = &loginnode.Nodes{
			Has: func(name string) bool { return name == "c1" },
			Place: func(context.Context, *auth.User, string) (*loginnode.Place, error) {
				return &loginnode.Place{Job: 77, Inside: session.Inside{Command: []string{"env", "IN_JOB=77"}, Connect: connect}}, nil
			},
		}
	})
	c, err := inner(n.login(n.ann()), n, "ann", n.ann().key)
	n.must(err)
	if out := run(t, c, "echo $IN_JOB; id -u"); out != "77\n"+itoa(n.ann().UID) {
		t.Errorf("%q", out)
	}
	l := listenTCP(t)
	counter(t, l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := c.Dial("tcp", "localhost:"+port)
	n.must(err)
	_, err = io.WriteString(conn, "12345")
	n.must(err)
	n.must(conn.(interface{ CloseWrite() error }).CloseWrite())
	if got, err := io.ReadAll(conn); err != nil || string(got) != "got 5" {
		t.Errorf("by localhost: %q, %v", got, err)
	}
	l.Close()
	if _, err := c.Dial("tcp", "localhost:"+port); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("a port without a listener: %v", err)
	}
}
