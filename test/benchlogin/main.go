// Command benchlogin measures the login node beside Debian's sshd: same
// machine, same key, same client, in turns. It needs root, bin/loginnode and
// openssh-server, and prints a table whose ratios are what counts.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "benchlogin:", err)
		os.Exit(1)
	}
}

// target is a server under measurement.
type target struct {
	name string
	addr string
	cmd  *exec.Cmd
}

type rig struct {
	dir, user, home string
	key             ssh.Signer
	targets         []*target
}

func bench() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	r := &rig{user: fmt.Sprintf("lnb%d", os.Getpid())}
	defer r.clean()
	if err := r.prepare(); err != nil {
		return err
	}
	fmt.Println("| what | login node | sshd | ratio |\n|---|---|---|---|")
	rows := []struct {
		name   string
		format string
		f      func(*target) (float64, error)
	}{
		{"logins/s, " + strconv.Itoa(clients) + " at a time, no session", "%.0f", func(t *target) (float64, error) { return r.rate(t, "") }},
		{"login and `true`/s, " + strconv.Itoa(clients) + " at a time", "%.0f", func(t *target) (float64, error) { return r.rate(t, "true") }},
		{"one login alone, ms (median)", "%.1f", r.latency},
		{"download through exec, MB/s", "%.0f", r.bulk},
		{"memory of an idle terminal session in the server, kB (PSS)", "%.0f", r.memory},
		{"threads of the server for " + strconv.Itoa(idle) + " idle terminals", "%.0f", r.threads},
	}
	for _, row := range rows {
		values := map[*target][]float64{}
		for range turns { // in turns, so that a busy machine is busy for both
			for _, t := range r.targets {
				v, err := row.f(t)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", row.name, t.name, err)
				}
				values[t] = append(values[t], v)
			}
		}
		a, b := median(values[r.targets[0]]), median(values[r.targets[1]])
		fmt.Printf("| %s | "+row.format+" | "+row.format+" | %.1f |\n", row.name, a, b, a/b)
	}
	return nil
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
	return errors.Join(r.startOurs(), r.startTheirs())
}

func (r *rig) startOurs() error {
	port := freePort()
	config := fmt.Sprintf(`listen: ["127.0.0.1:%d"]
hostKeys: %s/hostkeys
runDir: %s/run
audit: %s/audit.json
users: [{files: {passwd: /etc/passwd, group: /etc/group}}]
maxStartups: {begin: 1000, rate: 100, full: 1000, perSource: 1000}
maxSessions: 1000
`, port, r.dir, r.dir, r.dir)
	if err := os.WriteFile(r.dir+"/loginnode.yaml", []byte(config), 0o600); err != nil {
		return err
	}
	return r.start("loginnode", port, "bin/loginnode", "--config", r.dir+"/loginnode.yaml")
}

func (r *rig) startTheirs() error {
	port := freePort()
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/hostkey\nUsePAM no\nPidFile none\nMaxStartups 1000:100:1000\nMaxSessions 1000\nPasswordAuthentication no\nSubsystem sftp /usr/lib/openssh/sftp-server\n", port, r.dir)
	if err := os.WriteFile(r.dir+"/sshd_config", []byte(config), 0o600); err != nil {
		return err
	}
	return r.start("sshd", port, "/usr/sbin/sshd", "-D", "-e", "-f", r.dir+"/sshd_config")
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *rig) start(name string, port int, argv ...string) error {
	t := &target{name: name, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cmd: exec.Command(argv[0], argv[1:]...)}
	var errs bytes.Buffer
	t.cmd.Stderr = &errs
	if err := t.cmd.Start(); err != nil {
		return err
	}
	r.targets = append(r.targets, t)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, err := r.dial(t)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not answer: %w\n%s", name, err, errs.Bytes())
		}
	}
}

func (r *rig) clean() {
	for _, t := range r.targets {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
	}
	_ = exec.Command("userdel", r.user).Run()
	_ = os.RemoveAll(r.dir)
}

func (r *rig) dial(t *target) (*ssh.Client, error) {
	return ssh.Dial("tcp", t.addr, &ssh.ClientConfig{
		User: r.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second,
		Config: ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}}, // which both have
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
func (r *rig) withTerminals(t *target, f func() (float64, error)) (float64, error) {
	for range idle {
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

// memory is what a session adds to the memory of the server's own processes.
func (r *rig) memory(t *target) (float64, error) {
	before := pss(t)
	return r.withTerminals(t, func() (float64, error) { return float64(pss(t)-before) / idle, nil })
}

func (r *rig) threads(t *target) (float64, error) {
	return r.withTerminals(t, func() (float64, error) {
		n := 0
		for _, pid := range server(t) {
			tasks, _ := os.ReadDir("/proc/" + pid + "/task")
			n += len(tasks)
		}
		return float64(n), nil
	})
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
