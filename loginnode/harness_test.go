package loginnode_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/daemon"
	"github.com/berth-hpc/berth/loginnode/injob"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// deadline is the timeout of a client. It is far longer than any client takes on a busy machine.
const deadline = eventually.Timeout

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == session.ChildCommand {
		os.Exit(session.Child())
	}
	if len(os.Args) > 1 && os.Args[1] == injob.Arg {
		os.Exit(injob.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == daemon.PodCommand {
		os.Exit(daemon.Main(os.Args[1:], os.Stdout, os.Stderr, daemon.Peers{}))
	}
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Exit(daemon.Main(os.Args[2:], os.Stdout, os.Stderr, daemon.Peers{}))
	}
	// As the login node does: its sessions would ignore the signals that it ignores under nohup.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(runTests(m))
}

// asProgram is the first argument that makes the tests' program the login node.
const asProgram = "as-loginnode"

// firstUID is the first of the uids of this run's users: two runs on one machine use
// different ones.
var firstUID = 61000 + os.Getpid()%1000*4

// runTests removes what nameUsers created.
func runTests(m *testing.M) int {
	defer func() {
		for _, name := range named {
			_ = exec.Command("userdel", "-f", name).Run()
		}
	}()
	return m.Run()
}

var (
	nameOnce sync.Once
	named    []string
)

// nameUsers gives the users of the nodes names on this machine, because scp and
// sftp-server do not work for a uid without one.
func nameUsers() {
	for uid := firstUID; isRoot() && uid < firstUID+3; uid++ {
		name := "lnt" + itoa(uid)
		if out, err := exec.Command("useradd", "-M", "-U", "-u", itoa(uid), "-d", "/nonexistent", name).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "useradd %s: %v %s\n", name, err, out)
			continue
		}
		named = append(named, name)
	}
}

// person is a user of a node under test.
type person struct {
	*auth.User
	key     ssh.Signer
	keyFile string
}

// node is a login node on loopback with its own users, who are in no file of the
// machine. As root there are several, with unused uids; otherwise there is only the
// current user.
type node struct {
	t      testing.TB
	dir    string
	server *loginnode.Server
	addr   string
	host   ssh.Signer
	users  []*person
	audit  *records
	served chan error
}

func isRoot() bool { return os.Geteuid() == 0 }

func needRoot(t testing.TB) {
	t.Helper()
	if !isRoot() {
		t.Skip("needs root: sessions of several users")
	}
}

// start starts a node; change may alter the configuration first.
func start(t testing.TB, change ...func(*loginnode.Config)) *node {
	t.Helper()
	nameOnce.Do(nameUsers)
	// Not t.TempDir: users have to access it.
	dir, err := os.MkdirTemp("", "loginnode")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, audit: &records{}, served: make(chan error, 1)}
	n.host = newKey(t)
	n.addUsers()
	cfg := loginnode.Config{
		Auth: &auth.Config{
			Users: auth.Files{Passwd: filepath.Join(dir, "passwd"), Group: filepath.Join(dir, "group")},
			Log:   func(user, text string) { n.audit.log(user + ": " + text) },
		},
		HostKeys: []ssh.Signer{n.host},
		Session: session.Config{
			Child: []string{"/proc/self/exe", session.ChildCommand}, SFTPServer: sftpServer(),
		},
		Penalties: limit.Penalties{Off: true},
		RunDir:    filepath.Join(dir, "run"),
		Audit:     n.audit,
	}
	for _, f := range change {
		f(&cfg)
	}
	if n.server, err = loginnode.New(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.addr = l.Addr().String()
	go func() { n.served <- n.server.Serve(l) }()
	t.Cleanup(n.server.Close)
	return n
}

func sftpServer() string {
	const debian = "/usr/lib/openssh/sftp-server"
	if _, err := os.Stat(debian); err == nil {
		return debian
	}
	return ""
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// addUsers makes users, their homes and keys.
func (n *node) addUsers() {
	names, uid, gid := []string{"ann", "bob", "eve"}, firstUID, firstUID
	if !isRoot() {
		names, uid, gid = []string{"ann"}, os.Geteuid(), os.Getegid()
	}
	var passwd, group strings.Builder
	for i, name := range names {
		home := filepath.Join(n.dir, "home", name)
		u := &auth.User{Name: name, UID: uid + i, GID: gid + i, Home: home, Shell: "/bin/bash"}
		n.must(os.MkdirAll(filepath.Join(home, ".ssh"), 0o755))
		n.must(os.Chmod(home, 0o700))
		p := &person{User: u}
		p.key, p.keyFile = n.writeKey(name)
		n.must(os.WriteFile(filepath.Join(home, ".ssh", "authorized_keys"), ssh.MarshalAuthorizedKey(p.key.PublicKey()), 0o600))
		if isRoot() {
			for _, f := range []string{home + "/.ssh/authorized_keys", home + "/.ssh", home} { // in an order that needs no permission for the user's directories
				n.must(os.Chown(f, u.UID, u.GID))
			}
		}
		n.users = append(n.users, p)
		fmt.Fprintf(&passwd, "%s:x:%d:%d::%s:/bin/bash\n", name, u.UID, u.GID, home)
		fmt.Fprintf(&group, "%s:x:%d:\n", name, u.GID)
	}
	if isRoot() {
		fmt.Fprintf(&group, "project:x:%d:ann,bob\n", firstUID+100)
	}
	n.must(os.WriteFile(filepath.Join(n.dir, "passwd"), []byte(passwd.String()), 0o644))
	n.must(os.WriteFile(filepath.Join(n.dir, "group"), []byte(group.String()), 0o644))
}

// writeKey writes a key for the real clients.
func (n *node) writeKey(name string) (ssh.Signer, string) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	n.must(err)
	block, err := ssh.MarshalPrivateKey(private, name)
	n.must(err)
	file := filepath.Join(n.dir, "key-"+name)
	n.must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	s, err := ssh.NewSignerFromKey(private)
	n.must(err)
	n.must(os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(s.PublicKey()), 0o644))
	return s, file
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) ann() *person { return n.users[0] }
func (n *node) bob() *person { return n.users[1] }
func (n *node) eve() *person { return n.users[2] }

// authorize replaces a user's authorized_keys.
func (n *node) authorize(p *person, text string) {
	n.t.Helper()
	file := filepath.Join(p.Home, ".ssh", "authorized_keys")
	n.must(os.WriteFile(file, []byte(text), 0o600))
	if isRoot() {
		n.must(os.Chown(file, p.UID, p.GID))
	}
}

// dial logs in with Go's client.
func (n *node) dial(user string, keys ...ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)},
		HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
	})
}

// refused reports whether a client was refused with the usual message, without the
// reason.
func refused(err error) bool {
	const plain = "ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods remain"
	return err != nil && err.Error() == plain
}

func (n *node) login(p *person) *ssh.Client {
	n.t.Helper()
	c, err := n.dial(p.Name, p.key)
	n.must(err)
	n.t.Cleanup(func() { c.Close() })
	return c
}

// output returns the stdout of a command over a separate connection of Go's client.
func (n *node) output(p *person, command string) string {
	n.t.Helper()
	return run(n.t, n.login(p), command)
}

func run(t testing.TB, c *ssh.Client, command string) string {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The login node announces a pod that starts slowly on stderr.
	var output strings.Builder
	s.Stderr = &output
	out, err := s.Output(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, &output)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// have skips the test unless the programs are installed.
func have(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

// ssh is a command line of OpenSSH's client, or of a program that takes its
// options.
func (n *node) ssh(p *person, args ...string) *exec.Cmd {
	return n.tool("ssh", p, append([]string{"-p", n.port(), p.Name + "@127.0.0.1"}, args...)...)
}

func (n *node) port() string {
	_, port, err := net.SplitHostPort(n.addr)
	n.must(err)
	return port
}

// tool returns a command of OpenSSH with the options for this node.
func (n *node) tool(program string, p *person, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append(n.options(p), args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (n *node) options(p *person) []string {
	known := filepath.Join(n.dir, "known_hosts")
	n.must(os.WriteFile(known, []byte("* "+string(ssh.MarshalAuthorizedKey(n.host.PublicKey()))), 0o644))
	return []string{
		"-F", "/dev/null", "-i", p.keyFile, "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + known,
		"-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
	}
}

// records is an audit log in memory, and the log of the authentication.
type records struct {
	mu    sync.Mutex
	lines bytes.Buffer
	logs  []string
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(p)
}

func (r *records) log(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, text)
}

// logged reports whether authentication has logged such a message.
func (r *records) logged(part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.logs, "\n"), part)
}

// find returns the audit records of an event.
func (r *records) find(t testing.TB, event string) []audit.Record {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []audit.Record
	for line := range bytes.Lines(r.lines.Bytes()) {
		var one audit.Record
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("audit log: %v: %s", err, line)
		}
		if one.Event == event {
			out = append(out, one)
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
