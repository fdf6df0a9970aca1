package loginnode_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
)

// peer runs a Python program that speaks the protocol in its own way.
func (n *node) peer(program string) *exec.Cmd {
	n.t.Helper()
	have(n.t, python)
	if exec.Command(python, "-c", "import paramiko").Run() != nil {
		n.t.Skip("needs python3-paramiko")
	}
	script := filepath.Join(n.dir, "peer.py")
	n.must(os.WriteFile(script, []byte("import sys, time, paramiko\nfrom paramiko.message import Message\n"+program), 0o644))
	return exec.CommandContext(n.t.Context(), python, "-W", "ignore", script, n.port(), n.ann().keyFile)
}

// A client that starts a key exchange and does not continue it blocks everything on its
// connection. It is disconnected like a dead one, with its sessions.
func TestS07StuckKeyExchange(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.KeepAlive, c.KeepAliveMax = 200*time.Millisecond, 3 })
	cmd := n.peer(`
t = paramiko.Transport(("127.0.0.1", int(sys.argv[1])))
t.connect(username="ann", pkey=paramiko.Ed25519Key.from_private_key_file(sys.argv[2]))
s = t.open_session()
s.exec_command("while :; do echo still; sleep 0.1; done")
s.recv(5)
# Whatever the server sends from now on is not answered.
t._negotiate_keys = lambda m: None
t._parse_kex_init = lambda m: None
m = Message()
m.add_byte(bytes([20])); m.add_bytes(bytes(16))
for names in ("curve25519-sha256", "ssh-ed25519", "aes128-ctr", "aes128-ctr", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-256-etm@openssh.com", "none", "none", "", ""):
    m.add_string(names)
m.add_boolean(False); m.add_int(0)
t._send_message(m)
print("stuck", flush=True)
time.sleep(1000)
`)
	out, err := cmd.StdoutPipe()
	n.must(err)
	n.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	other := n.login(n.ann())
	if got := run(t, other, "echo alive"); got != "alive" {
		t.Errorf("another's connection: %q", got)
	}
	other.Close()
	eventually.Holds(t, "the stuck connection and its session end", func() bool {
		return n.metric("berth_login_sessions") == "0" && n.metric("berth_login_connections") == "0"
	})
}

// A name or a greeting of any size before the login fills neither the memory nor the disk of
// the audit log.
func TestS06HugeTextsBeforeTheLogin(t *testing.T) {
	n := start(t)
	huge := strings.Repeat("x\x1b[2J", 30<<10)
	for range 3 {
		if _, err := n.dial(huge, n.ann().key); err == nil {
			t.Fatal("the login succeeded")
		}
	}
	for _, r := range n.audit.find(t, "login-failed") {
		if len(r.User) > 5000 {
			t.Errorf("%d bytes of a name are in the log", len(r.User))
		}
	}
	for _, greeting := range []string{strings.Repeat("A", 1<<20), "SSH-2.0-" + strings.Repeat("B", 1<<20) + "\r\n", strings.Repeat("\r\n", 1<<19)} {
		conn := dialRaw(t, n.addr)
		_ = conn.SetDeadline(time.Now().Add(deadline))
		_, _ = io.WriteString(conn, greeting)
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Errorf("%.10q...: the server keeps the connection open", greeting)
		}
		conn.Close()
	}
	if got := n.output(n.ann(), "echo in"); got != "in" {
		t.Error(got)
	}
	if n.metric("berth_login_panics_total") != "0" {
		t.Error("the server has panicked")
	}
}
