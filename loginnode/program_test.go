package loginnode_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
)

// After SIGTERM the program is no longer ready, refuses new logins, writes a message to every
// terminal, lets the session finish, and exits with 0.
func TestProgramDrains(t *testing.T) {
	n := start(t) // for its users and keys
	_, host := n.writeKey("host")
	n.must(os.Mkdir(filepath.Join(n.dir, "hostkeys"), 0o700))
	n.must(os.Rename(host, filepath.Join(n.dir, "hostkeys", "key")))
	addr, metrics := freeAddress(t), freeAddress(t)
	config := filepath.Join(n.dir, "loginnode.yaml")
	n.must(os.WriteFile(config, fmt.Appendf(nil, `
listen: [%q]
metrics: %q
hostKeys: %[3]s/hostkeys
runDir: %[3]s/run2
audit: "-"
users: [{files: {passwd: %[3]s/passwd, group: %[3]s/group}}]
drainMessage: this node ends
`, addr, metrics, n.dir), 0o600))
	cmd := exec.Command("/proc/self/exe", asProgram, "--config", config)
	var audit, log lockedBuffer
	cmd.Stdout, cmd.Stderr = &audit, &log
	n.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := func() string {
		r, err := http.Get("http://" + metrics + "/readyz")
		if err != nil {
			return err.Error()
		}
		r.Body.Close()
		return r.Status
	}
	eventually.Holds(t, "the program is ready", func() bool { return strings.HasPrefix(ready(), "200") })
	dial := func() (*ssh.Client, error) {
		return ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: deadline})
	}
	c, err := dial()
	n.must(err)
	defer c.Close()
	s, err := c.NewSession()
	n.must(err)
	n.must(s.RequestPty("xterm", 24, 80, nil))
	var output, out lockedBuffer
	s.Stderr, s.Stdout = &output, &out
	in, err := s.StdinPipe()
	n.must(err)
	n.must(s.Start("echo begun; read x; exit 5"))
	eventually.Holds(t, "the session", func() bool { return strings.Contains(out.String(), "begun") })

	n.must(cmd.Process.Signal(syscall.SIGTERM))
	eventually.Holds(t, "the message in the terminal", func() bool { return strings.Contains(output.String(), "this node ends") })
	if got := ready(); !strings.HasPrefix(got, "503") {
		t.Errorf("ready while it drains: %s", got)
	}
	if c, err := dial(); err == nil {
		c.Close()
		t.Error("a login while it drains")
	}
	_, err = io.WriteString(in, "\n")
	n.must(err)
	var exit *ssh.ExitError
	if err := s.Wait(); !asError(err, &exit) || exit.ExitStatus() != 5 {
		t.Errorf("the session: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program: %v\n%s", err, log.String())
	}
	for _, event := range []string{`"login"`, `"session-start"`, `"drain"`, `"session-end"`, `"logout"`} {
		if !strings.Contains(audit.String(), event) {
			t.Errorf("no %s in the audit log:\n%s", event, audit.String())
		}
	}
}

func freeAddress(t *testing.T) string {
	l := listenTCP(t)
	defer l.Close()
	return l.Addr().String()
}
