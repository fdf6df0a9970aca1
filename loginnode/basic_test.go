package loginnode_test

import (
	"bytes"
	"errors"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
)

func TestExecRunsAsTheUser(t *testing.T) {
	n := start(t)
	got := n.output(n.ann(), "id -u; id -g; pwd; umask; echo $HOME $USER $LOGNAME $SHELL")
	want := strings.Join([]string{itoa(n.ann().UID), itoa(n.ann().GID), n.ann().Home, "0022",
		n.ann().Home + " ann ann /bin/bash"}, "\n")
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if isRoot() {
		if got := n.output(n.ann(), "id -G"); got != itoa(firstUID)+" "+itoa(firstUID+100) {
			t.Errorf("groups: %s", got)
		}
	}
}

// A server that is started by nohup ignores SIGHUP; the programs that it starts do not.
func TestSessionsIgnoreNoSignal(t *testing.T) {
	n := start(t)
	signal.Ignore(syscall.SIGHUP, syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGTTOU)
	if got := n.output(n.ann(), "grep SigIgn /proc/self/status"); !strings.HasSuffix(got, "\t0000000000000000") {
		t.Error(got)
	}
}

func TestOpenSSHRunsACommand(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	cmd := n.ssh(n.ann(), "cat; echo err >&2; exit 7")
	cmd.Stdin = strings.NewReader("through\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || out.String() != "through\n" || errs.String() != "err\n" {
		t.Errorf("%v, out %q, err %q", err, out.String(), errs.String())
	}
}

func TestTerminalIsByteExact(t *testing.T) {
	n := start(t)
	s, err := n.login(n.ann()).NewSession()
	n.must(err)
	n.must(s.RequestPty("xterm-256color", 40, 132, ssh.TerminalModes{ssh.ECHO: 0, ssh.OPOST: 0}))
	out, err := s.Output(`stty size; printf 'a\nb'; echo $TERM; tty`)
	n.must(err)
	if !strings.HasPrefix(string(out), "40 132\na\nbxterm-256color\n/dev/pts/") {
		t.Errorf("%q", out)
	}
}

// The log shows who did what, from where, with which key, how it ended and how many
// bytes were transferred.
func TestAuditLogRecordsWhatWasDone(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	s, err := c.NewSession()
	n.must(err)
	s.Stdin = strings.NewReader("12345")
	if out, err := s.Output("cat; printf 678; exit 4"); string(out) != "12345678" {
		t.Fatalf("%q, %v", out, err)
	}
	eventually.Holds(t, "the end of the session in the audit log", func() bool { return len(n.audit.find(t, "session-end")) == 1 })
	in, began, end := n.audit.find(t, "login")[0], n.audit.find(t, "session-start")[0], n.audit.find(t, "session-end")[0]
	if in.User != "ann" || *in.UID != n.ann().UID || in.Method != "publickey" || in.KeyType != ssh.KeyAlgoED25519 ||
		in.Fingerprint != ssh.FingerprintSHA256(n.ann().key.PublicKey()) || in.Source != c.LocalAddr().String() || !strings.HasPrefix(in.Client, "SSH-2.0-") || in.By == "" {
		t.Errorf("login: %+v", in)
	}
	if began.Conn != in.Conn || began.User != "ann" || began.Kind != "exec" || began.Command != "cat; printf 678; exit 4" || began.TTY != "" {
		t.Errorf("start: %+v", began)
	}
	if end.Conn != in.Conn || end.Exit == nil || *end.Exit != 4 || end.BytesIn != 5 || end.BytesOut != 8 || end.Command != began.Command {
		t.Errorf("end: %+v", end)
	}
}

func TestLoginWithoutRequestIsRecorded(t *testing.T) {
	n := start(t)
	c, err := n.dial("ann", n.ann().key)
	n.must(err)
	c.Close()
	eventually.Holds(t, "login and logout in the audit log", func() bool {
		return len(n.audit.find(t, "login")) == 1 && len(n.audit.find(t, "logout")) == 1
	})
	if got := n.metric("berth_login_connections"); got != "0" {
		t.Errorf("connections: %s", got)
	}
}
