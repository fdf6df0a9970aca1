// Command benchlogin compares the login node with Debian's sshd: same machine, same
// key, same client, alternately. It needs root, bin/loginnode and openssh-server, and
// writes a table into docs/performance.md in which the ratios matter.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	clients  = 8
	turns    = 3
	perTurn  = 3 * time.Second
	idle     = 100 // terminals
	bulkSize = 200 << 20
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == gatewayArg {
		if err := gateway(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "benchlogin:", err)
			os.Exit(1)
		}
		return
	}
	flag.DurationVar(&soak, "soak", 20*time.Second, "how long logins come and clients are killed")
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
	metrics string // URL; "": none
	cmd     *exec.Cmd
}

type rig struct {
	dir, user, home string
	key             ssh.Signer
	targets         []*target // the login node, sshd
	pods            *target   // the login node whose users have pods
	ending          *target   // one more that is drained; nil: it is not there yet
	started         []*target

	uid    string
	many   crowd
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

func median(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }

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
	return errors.Join(r.startOurs(), r.startTheirs(), r.startPods())
}

func (r *rig) startOurs() error {
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

func (r *rig) startTheirs() error {
	port := freePort()
	config := fmt.Sprintf(
		"Port %d\nListenAddress 127.0.0.1\nHostKey %s/hostkey\nUsePAM no\nPidFile none\nMaxStartups 1000:100:1000\nMaxSessions 1000\nPasswordAuthentication no\nSubsystem sftp /usr/lib/openssh/sftp-server\n", port, r.dir)
	if err := os.WriteFile(r.dir+"/sshd_config", []byte(config), 0o600); err != nil {
		return err
	}
	t, err := r.start("sshd", port, "/usr/sbin/sshd", "-D", "-e", "-f", r.dir+"/sshd_config")
	r.targets = append(r.targets, t)
	return err
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *rig) start(name string, port int, argv ...string) (*target, error) {
	t := &target{
		name: name, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		cmd: exec.Command(argv[0], argv[1:]...),
	}
	var errs bytes.Buffer
	t.cmd.Stderr = &errs
	t.cmd.WaitDelay = time.Second // sessions may hold it
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	r.started = append(r.started, t)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, err := r.dial(t)
		if err == nil {
			return t, c.Close()
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s does not answer: %w\n%s", name, err, errs.Bytes())
		}
	}
}

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

func (r *rig) dial(t *target) (*ssh.Client, error) {
	return ssh.Dial("tcp", t.addr, &ssh.ClientConfig{
		User: r.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 30 * time.Second,
		Config:  ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}}, // which both have
	})
}

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

// rate is logins a second of several clients.
func (r *rig) rate(t *target, command string) (float64, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	done, began := 0, time.Now()
	for range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Since(began) < perTurn {
				err := r.once(t, command)
				mu.Lock()
				done++
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
	}
	wg.Wait()
	return float64(done) / time.Since(began).Seconds(), failed
}

func (r *rig) latency(t *target) (float64, error) {
	var all []float64
	for range 30 {
		began := time.Now()
		if err := r.once(t, ""); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(began).Microseconds())/1000)
	}
	return median(all), nil
}

func (r *rig) bulk(t *target) (float64, error) {
	c, err := r.dial(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	s, err := c.NewSession()
	if err != nil {
		return 0, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.Start("head -c " + strconv.Itoa(bulkSize) + " /dev/zero"); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if err == nil && n != bulkSize {
		err = fmt.Errorf("%d bytes of %d", n, bulkSize)
	}
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// withTerminals opens idle terminals, each on a connection of its own, and
// calls f while they are open.
func (r *rig) withTerminals(t *target, count int, f func() (float64, error)) (float64, error) {
	for range count {
		c, err := r.dial(t)
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
		s, err := c.NewSession()
		if err != nil {
			return 0, err
		}
		if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
			return 0, err
		}
		if _, err := s.StdinPipe(); err != nil {
			return 0, err
		}
		if err := s.Start("exec cat"); err != nil {
			return 0, err
		}
	}
	return f()
}

// memory returns what a session adds to the memory of the server's own processes.
func (r *rig) memory(t *target) (float64, error) {
	before := pss(t)
	return r.withTerminals(t, idle, func() (float64, error) { return float64(pss(t)-before) / idle, nil })
}

func (r *rig) threads(t *target) (float64, error) {
	return r.withTerminals(t, idle, func() (float64, error) {
		return float64(threadsOf(t)), nil
	})
}

func threadsOf(t *target) (n int) {
	for _, pid := range server(t) {
		tasks, _ := os.ReadDir("/proc/" + pid + "/task")
		n += len(tasks)
	}
	return n
}

// server are the processes of a target that are the server, not the users'
// shells.
func server(t *target) []string {
	own := map[string]bool{strconv.Itoa(t.cmd.Process.Pid): true}
	for range 4 { // generations
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, f := range stats {
			data, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			head, rest, _ := strings.Cut(string(data), ") ")
			pid, name, _ := strings.Cut(head, " (")
			if f := strings.Fields(rest); len(f) > 1 && own[f[1]] && (name == "sshd" || name == "loginnode") {
				own[pid] = true
			}
		}
	}
	var out []string
	for pid := range own {
		out = append(out, pid)
	}
	return out
}

// pss is the memory of the server in kB.
func pss(t *target) int {
	total := 0
	for _, pid := range server(t) {
		data, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				n, _ := strconv.Atoi(f[1])
				total += n
			}
		}
	}
	return total
}
