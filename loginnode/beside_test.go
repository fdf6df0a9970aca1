package loginnode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

const sshd = "/usr/sbin/sshd"

// walker is a user of the system, so that sshd can serve the same user.
type walker struct {
	*node
	name, uid, home, sshdPort string
}

// TestBesideSSHD runs common uses of ssh, scp, sftp, rsync and others with the login
// node and with sshd: output, messages and exit codes are the same. The scripts are in
// testdata/beside.
func TestBesideSSHD(t *testing.T) {
	needRoot(t)
	if os.Getenv("BERTH_TEST_FULL") == "" {
		t.Skip("takes minutes on a busy machine: BERTH_TEST_FULL=1, or make test-login-long")
	}
	have(t, "ssh", "scp", "sftp", "rsync", "python3", "curl", sshd)
	w := newWalker(t)
	scripts, err := filepath.Glob("testdata/beside/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".sh"), func(t *testing.T) {
			for _, p := range []string{"tmux", "git"} {
				if strings.HasPrefix(filepath.Base(script), p) {
					have(t, p)
				}
			}
			theirs, ours := w.walk(t, script, w.sshdPort), w.walk(t, script, w.port())
			if ours != theirs {
				t.Errorf("sshd (-) and the login node (+):\n%s", w.diff(theirs, ours))
			}
		})
	}
}

func newWalker(t *testing.T) *walker {
	w := &walker{name: fmt.Sprintf("lnw%d", os.Getpid())}
	w.node = start(t, func(c *loginnode.Config) {
		c.Auth.Users = auth.Files{Passwd: "/etc/passwd", Group: "/etc/group"}
		c.Session.Path = "/usr/local/bin:/usr/bin:/bin:/usr/games"
	})
	w.home = filepath.Join(w.dir, "home", "walker")
	if out, err := exec.Command("useradd", "-m", "-K", "HOME_MODE=0700", "-p", "*", "-d", w.home, "-s", "/bin/bash", w.name).CombinedOutput(); err != nil {
		t.Skipf("no user can be added here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("userdel", "-f", w.name).Run() })
	u, err := user.Lookup(w.name)
	w.must(err)
	w.uid = u.Uid
	w.startSSHD(t)
	return w
}

// startSSHD starts Debian's server with the same host key, and the defaults of the
// login node.
func (w *walker) startSSHD(t *testing.T) {
	t.Helper()
	l := listenTCP(t)
	_, w.sshdPort, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	_, host := w.writeKey("host")
	config := filepath.Join(w.dir, "sshd_config")
	w.must(os.WriteFile(config, []byte(strings.Join([]string{
		"Port " + w.sshdPort, "ListenAddress 127.0.0.1", "HostKey " + host, "PidFile none", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PrintMotd no", "PrintLastLog no", "AcceptEnv LANG LC_* COLORTERM NO_COLOR", "Subsystem sftp /usr/lib/openssh/sftp-server", "MaxSessions 64",
	}, "\n")+"\n"), 0o600))
	w.must(os.MkdirAll("/run/sshd", 0o755))
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	var output lockedBuffer
	cmd.Stderr = &output
	w.must(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", output.String())
		}
	})
	eventually.Holds(t, "sshd answers", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+w.sshdPort)
		return err == nil && c.Close() == nil
	})
}

// walk runs a script against a server, in a fresh directory and home, and returns
// its whole output without the parts that differ from one run to the next.
func (w *walker) walk(t *testing.T, script, port string) string {
	t.Helper()
	d, err := os.MkdirTemp(w.dir, "walk")
	w.must(err)
	w.newHome()
	w.must(os.WriteFile(d+".config", []byte(w.config(port)), 0o600))
	tools, err := filepath.Abs("testdata/beside/tools")
	w.must(err)
	text, err := os.ReadFile(script)
	w.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", ". "+tools+"/prelude.bash\n"+string(text))
	cmd.Dir = d
	cmd.Env = append(os.Environ(), "CONFIG="+d+".config", "PORT="+port, "WHO="+w.name, "KEY="+w.ann().keyFile, "HOSTKEY="+w.hostKey(port), "REMOTE="+w.home, "TOOLS="+tools, "D="+d)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		errs.WriteString("walk: " + err.Error() + "\n")
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	w.endAll(t)
	return strings.NewReplacer(d, "DIRECTORY", w.home, "HOME", w.name, "USER", "port "+port, "port PORT", ":"+port, ":PORT", "\r", "").
		Replace("--- output\n" + out.String() + "--- errors\n" + errs.String())
}

// endAll kills the remaining processes of the user, which could still write to the
// home, like a shell without a terminal.
func (w *walker) endAll(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the user's processes end", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*/status")
		w.must(err)
		left := 0
		for _, f := range all {
			status, _ := os.ReadFile(f) // it may have ended
			if text := string(status); !strings.Contains(text, "\nUid:\t"+w.uid+"\t") || strings.Contains(text, "\nState:\tZ") {
				continue
			}
			left++
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			w.must(err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return left == 0
	})
}

func (w *walker) diff(a, b string) string {
	names := []string{filepath.Join(w.dir, "a"), filepath.Join(w.dir, "b")}
	for i, text := range []string{a, b} {
		w.must(os.WriteFile(names[i], []byte(text), 0o600))
	}
	out, _ := exec.Command("diff", "-U2", names[0], names[1]).CombinedOutput()
	return string(out)
}

func (w *walker) hostKey(port string) string {
	if port == w.sshdPort {
		return filepath.Join(w.dir, "key-host.pub")
	}
	file := filepath.Join(w.dir, "key-own.pub")
	w.must(os.WriteFile(file, ssh.MarshalAuthorizedKey(w.host.PublicKey()), 0o644))
	return file
}

// newHome gives the user an empty home with a key and a plain prompt.
func (w *walker) newHome() {
	w.must(os.RemoveAll(w.home))
	w.must(os.MkdirAll(filepath.Join(w.home, ".ssh"), 0o700))
	w.must(os.Chmod(w.home, 0o700))
	w.must(os.WriteFile(filepath.Join(w.home, ".ssh", "authorized_keys"), ssh.MarshalAuthorizedKey(w.ann().key.PublicKey()), 0o600))
	w.must(os.WriteFile(filepath.Join(w.home, ".bash_profile"), []byte("PS1='$ '\nbind 'set enable-bracketed-paste off' 2> /dev/null\n"), 0o644))
	w.output2(exec.Command("chown", "-R", w.name+":", w.home))
}

func (w *walker) config(port string) string {
	known := filepath.Join(w.dir, "known_hosts")
	w.must(os.WriteFile(known, []byte("server "+string(ssh.MarshalAuthorizedKey(w.host.PublicKey()))+"server "+w.public("host")), 0o644))
	return "Host *\n HostName 127.0.0.1\n Port " + port + "\n User " + w.name + "\n HostKeyAlias server\n IdentityFile " + w.ann().keyFile +
		"\n IdentitiesOnly yes\n BatchMode yes\n StrictHostKeyChecking yes\n UserKnownHostsFile " + known + "\n GlobalKnownHostsFile /dev/null\n UpdateHostKeys no\n"
}

func (w *walker) public(name string) string {
	data, err := os.ReadFile(filepath.Join(w.dir, "key-"+name+".pub"))
	w.must(err)
	return string(data)
}
