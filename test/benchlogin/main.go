// Command benchlogin compares the login node with Debian's sshd on the same machine, with
// the same key and client, in turns. It needs root, bin/loginnode and openssh-server, and
// writes a table into docs/performance.md. Only the ratios in it hold for other machines.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	clients = 8 // that log in concurrently
	turns   = 3 // measurements of each server
	perTurn = 3 * time.Second
	idle    = 100 // terminals
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == gatewayArg {
		if err := gateway(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "benchlogin:", err)
			os.Exit(1)
		}
		return
	}
	flag.DurationVar(&soak, "soak", 20*time.Second, "how long clients log in and are killed")
	flag.StringVar(&only, "only", "", "measure only rows whose name contains this, and print them")
	flag.Parse()
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "benchlogin:", err)
		os.Exit(1)
	}
}

// target is a server under measurement.
type target struct {
	name    string
	addr    string
	metrics string // URL; "": it has none
	cmd     *exec.Cmd
}

// rig has the user and the servers of a run, and results that several rows share.
type rig struct {
	dir, user, home string
	uid             string     // of user
	key             ssh.Signer // of user
	targets         []*target  // the login node, sshd
	pods            *target    // the login node whose users have pods
	drained         *target    // another login node, which is stopped; nil: not started yet
	started         []*target  // all of them

	many   manyReport
	soaked soakReport
}

func bench() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	r := &rig{user: fmt.Sprintf("lnb%d", os.Getpid())}
	defer r.clean()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		r.clean()
		os.Exit(1)
	}()
	if err := r.prepare(); err != nil {
		return err
	}
	text, err := r.table()
	if err != nil || only != "" {
		return err
	}
	return write("docs/performance.md", text)
}

// prepare creates the user and the keys, and starts the servers.
func (r *rig) prepare() error {
	var err error
	if r.dir, err = os.MkdirTemp("", "benchlogin"); err != nil {
		return err
	}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		return err
	}
	r.home = filepath.Join(r.dir, "home")
	for _, argv := range [][]string{
		{"useradd", "-m", "-p", "*", "-d", r.home, "-s", "/bin/bash", r.user},
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.dir + "/key"},
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.dir + "/hostkey"},
		{"mkdir", "-p", r.home + "/.ssh", r.dir + "/hostkeys", "/run/sshd"},
		{"cp", r.dir + "/key.pub", r.home + "/.ssh/authorized_keys"},
		{"cp", r.dir + "/hostkey", r.dir + "/hostkeys/"},
		{"rm", "-f", r.home + "/.bashrc"},
		{"chown", "-R", r.user, r.home},
		{"chmod", "-R", "go-rwx", r.home},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w %s", argv, err, out)
		}
	}
	data, err := os.ReadFile(r.dir + "/key")
	if err != nil {
		return err
	}
	if r.key, err = ssh.ParsePrivateKey(data); err != nil {
		return err
	}
	return errors.Join(r.startLoginNode(), r.startSSHD(), r.startPods())
}

func (r *rig) startLoginNode() error {
	t, err := r.loginnode("loginnode", `maxStartups: {begin: 1000, rate: 100, full: 1000, perSource: 1000}
maxSessions: 1000
maxUserConnections: 2000
maxUserChannels: 2000
perSourcePenalties: {disabled: true}
`)
	r.targets = append(r.targets, t)
	return err
}

// loginnode starts a login node with an audit log, and users from files. One user's logins
// and sessions may come at any rate, because all clients of the benchmark are one user and
// sshd has no such limit.
func (r *rig) loginnode(name, more string) (*target, error) {
	port, metrics := freePort(), freePort()
	config := fmt.Sprintf(`listen: ["127.0.0.1:%d"]
metrics: "127.0.0.1:%d"
hostKeys: %s/hostkeys
runDir: %s/run-%s
audit: %s/audit-%s.json
users: [{files: {passwd: /etc/passwd, group: /etc/group}}]
userLogins: {perSecond: 100000, burst: 100000}
userSessions: {perSecond: 100000, burst: 100000}
`, port, metrics, r.dir, r.dir, name, r.dir, name) + more
	file := r.dir + "/" + name + ".yaml"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	t, err := r.start(name, port, "bin/loginnode", "--config", file)
	if err != nil {
		return nil, err
	}
	t.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	return t, nil
}

func (r *rig) startSSHD() error {
	port := freePort()
	config := fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s/hostkey
UsePAM no
PidFile none
MaxStartups 1000:100:1000
MaxSessions 1000
PasswordAuthentication no
Subsystem sftp /usr/lib/openssh/sftp-server
`, port, r.dir)
	if err := os.WriteFile(r.dir+"/sshd_config", []byte(config), 0o600); err != nil {
		return err
	}
	t, err := r.start("sshd", port, "/usr/sbin/sshd", "-D", "-e", "-f", r.dir+"/sshd_config")
	r.targets = append(r.targets, t)
	return err
}

// freePort returns a port that no process listens on.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts a server and returns when it accepts logins.
func (r *rig) start(name string, port int, argv ...string) (*target, error) {
	t := &target{
		name: name, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		cmd: exec.Command(argv[0], argv[1:]...),
	}
	var errs bytes.Buffer
	t.cmd.Stderr = &errs
	t.cmd.WaitDelay = time.Second // sessions may keep standard error open
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	r.started = append(r.started, t)
	if err := retry(func() error { return r.once(t, "") }); err != nil {
		return nil, fmt.Errorf("%s does not answer: %w\n%s", name, err, errs.Bytes())
	}
	return t, nil
}

// retry returns when f succeeds, or its last error after 30 seconds.
func retry(f func() error) error {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err := f(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// clean ends all processes and removes the user and the files.
func (r *rig) clean() {
	for _, t := range r.started {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
	}
	for _, pid := range r.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = exec.Command("userdel", r.user).Run()
	_ = os.RemoveAll(r.dir)
}

// dial logs in.
func (r *rig) dial(t *target) (*ssh.Client, error) {
	return ssh.Dial("tcp", t.addr, &ssh.ClientConfig{
		User: r.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 30 * time.Second,
		Config:  ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}}, // which both servers have
	})
}

// once logs in and runs a command; "": none.
func (r *rig) once(t *target, command string) error {
	c, err := r.dial(t)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if command == "" {
		return nil
	}
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	return s.Run(command)
}

// terminal logs in and returns a session with a terminal that runs nothing yet. The caller
// closes the client.
func (r *rig) terminal(t *target) (*ssh.Client, *ssh.Session, error) {
	c, err := r.dial(t)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.NewSession()
	if err == nil {
		err = s.RequestPty("xterm", 24, 80, nil)
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, s, nil
}
