package loginnode_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
)

func dialRaw(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, deadline)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// str returns a string in the wire format, with a length that may be wrong.
func str(length uint32, s string) string {
	return string(binary.BigEndian.AppendUint32(nil, length)) + s
}

func TestS07MalformedRequestsHarmNobodyElse(t *testing.T) {
	n := start(t)
	other := n.login(n.ann())
	for kind, payloads := range map[string][]string{
		"pty-req":                    {"", "\xff\xff\xff\xff", str(0xffffffff, "xterm"), str(5, "xterm"), str(1<<31, "")},
		"env":                        {"", str(0xffffffff, "A"), str(1, "A") + str(99, "x")},
		"exec":                       {"", str(0xffffffff, "id"), str(4, "id")},
		"subsystem":                  {"", str(0xffffffff, "sftp"), str(4, "nope")},
		"window-change":              {"", "\x00", strings.Repeat("\xff", 16)},
		"signal":                     {"", str(0xfffffff0, "TERM"), str(4, "TERM")},
		"shell\x00":                  {""},
		"break":                      {"", "\x00"},
		"x11-req":                    {strings.Repeat("\xff", 40)},
		"auth-agent-req@openssh.com": {"garbage"},
	} {
		for _, payload := range payloads {
			c := n.login(n.ann())
			ch, reqs, err := c.OpenChannel("session", nil)
			n.must(err)
			go ssh.DiscardRequests(reqs)
			_, _ = ch.SendRequest(kind, true, []byte(payload))
			ch.Close()
			c.Close()
		}
	}
	for _, kind := range []string{"direct-tcpip", "direct-streamlocal@openssh.com", "x11", "session\xff", "tun@openssh.com"} {
		for _, payload := range []string{"", str(0xffffffff, "h"), strings.Repeat("\xff", 64)} {
			c := n.login(n.ann())
			if _, _, err := c.OpenChannel(kind, []byte(payload)); err == nil {
				t.Errorf("%q %q was accepted", kind, payload)
			}
			c.Close()
		}
	}
	c := n.login(n.ann())
	for _, kind := range []string{"tcpip-forward", "cancel-tcpip-forward", "streamlocal-forward@openssh.com",
		"cancel-streamlocal-forward@openssh.com", "hostkeys-prove-00@openssh.com", "no-such"} {
		if ok, _, err := c.SendRequest(kind, true, []byte(str(0xffffffff, "x"))); err != nil || ok {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
	if got := run(t, other, "echo alive"); got != "alive" {
		t.Errorf("another's connection: %q", got)
	}
	if n.metric("berth_login_panics_total") != "0" {
		t.Error("a request made the server panic")
	}
}

// metric reads a value from /metrics.
func (n *node) metric(name string) string {
	n.t.Helper()
	var b bytes.Buffer
	rec := newRecorder(&b)
	n.server.Handler().ServeHTTP(rec, request(n.t, "/metrics"))
	for line := range strings.Lines(b.String()) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func TestS07ManyChannels(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.MaxSessions = 3 })
	c := n.login(n.ann())
	var kept []*ssh.Session
	for range 3 {
		s, err := c.NewSession()
		n.must(err)
		kept = append(kept, s)
	}
	tries := 2000
	if os.Getenv("BERTH_TEST_FULL") != "" {
		tries = 100_000
	}
	took := figures(t, itoa(tries)+" channels beyond the limit")
	for range tries {
		_, _, err := c.OpenChannel("session", nil)
		var open *ssh.OpenChannelError
		if !asError(err, &open) || open.Reason != ssh.Prohibited {
			t.Fatalf("beyond the limit: %v", err)
		}
	}
	took()
	if out, err := kept[0].Output("echo still"); err != nil || string(out) != "still\n" {
		t.Errorf("%q, %v", out, err)
	}
	kept[1].Close()
	eventually.Holds(t, "a session can be opened again", func() bool {
		s, err := c.NewSession()
		if err == nil {
			s.Close()
		}
		return err == nil
	})
}

func TestS09Environment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "x")
	n := start(t)
	c := n.login(n.ann())
	s, err := c.NewSession()
	n.must(err)
	for name, want := range map[string]bool{
		"LANG": true, "LC_ALL": true, "COLORTERM": true, "NO_COLOR": true,
		"LD_PRELOAD": false, "PATH": false, "BASH_ENV": false, "IFS": false, "SLURM_CONF": false, "KUBECONFIG": false,
		"HOME": false, "SHELLOPTS": false, "A": false, "LC_=x\nLD_PRELOAD": false, "LC_\x00": false,
	} {
		if got := s.Setenv(name, "C") == nil; got != want {
			t.Errorf("%q: accepted %v", name, got)
		}
	}
	if s.Setenv("LANG", strings.Repeat("x", 100<<10)) == nil {
		t.Error("100 kB was accepted")
	}
	out, err := s.Output("cat /proc/self/environ | tr '\\0' '\\n'; ls /proc/self/fd")
	n.must(err)
	text := string(out)
	for _, bad := range []string{"SECRET", "LD_PRELOAD", "BASH_ENV", "GOGC", "KUBECONFIG"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s reached the session:\n%s", bad, text)
		}
	}
	for _, good := range []string{"LANG=C\n", "LC_ALL=C\n", "USER=ann\n", "SSH_CLIENT=127.0.0.1 ", "SSH_CONNECTION=127.0.0.1 "} {
		if !strings.Contains(text, good) {
			t.Errorf("%s is missing:\n%s", good, text)
		}
	}
	// 0, 1, 2 and the directory that ls itself reads.
	if !strings.HasSuffix(text, "\n0\n1\n2\n3\n") {
		t.Errorf("open descriptors: %s", text)
	}
	s, err = c.NewSession()
	n.must(err)
	accepted := 0
	for i := range 2000 {
		if s.Setenv("LC_"+strconv.Itoa(i), "x") == nil {
			accepted++
		}
	}
	if accepted > 64 {
		t.Errorf("%d variables were accepted", accepted)
	}
}

func TestS10PrivilegesAreGone(t *testing.T) {
	needRoot(t)
	n := start(t)
	got := n.output(n.ann(), `grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Uid|Gid):' /proc/self/status | tr '\t' ' '
		for f in environ mem root maps; do head -c1 /proc/`+itoa(os.Getpid())+`/$f >/dev/null 2>&1 && echo can read $f; done
		ls /proc/`+itoa(os.Getpid())+`/fd >/dev/null 2>&1 && echo can list descriptors
		kill -0 `+itoa(os.Getpid())+` 2>/dev/null && echo can signal; cat /etc/shadow 2>/dev/null; true`)
	uid, gid := itoa(n.ann().UID), itoa(n.ann().GID)
	want := strings.Join([]string{"Uid: " + strings.Repeat(uid+" ", 3) + uid, "Gid: " + strings.Repeat(gid+" ", 3) + gid,
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapAmb: 0000000000000000", "NoNewPrivs: 1"}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s, err := n.login(n.ann()).NewSession()
	n.must(err)
	n.must(s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.OPOST: 0}))
	out, err := s.Output(`stat -c '%u %a' $(tty); ps -o tpgid= -p $$ | tr -d ' '; test -t 0 && echo terminal; echo x >/dev/tty && true`)
	n.must(err)
	if f := strings.Fields(string(out)); len(f) < 4 || f[0] != uid || f[1] != "620" || f[2] == "-1" || f[3] != "terminal" {
		t.Errorf("terminal: %q", out)
	}
	// Nor another user's processes.
	other, err := n.login(n.bob()).NewSession()
	n.must(err)
	pipe, err := other.StdoutPipe()
	n.must(err)
	n.must(other.Start("echo $$; exec sleep 1000"))
	var pid int
	_, err = fmt.Fscan(pipe, &pid)
	n.must(err)
	if got := n.output(n.ann(), fmt.Sprintf("kill -9 %d 2>/dev/null && echo killed; cat /proc/%d/environ 2>/dev/null; true", pid, pid)); got != "" {
		t.Errorf("ann and bob's process: %q", got)
	}
}

func TestWindowChangeBeforeTheShellDoesNotBlock(t *testing.T) {
	n := start(t)
	s, err := n.login(n.ann()).NewSession()
	n.must(err)
	n.must(s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.OPOST: 0}))
	for i := range 20 {
		n.must(s.WindowChange(30+i, 100))
	}
	out, err := s.Output("stty size")
	if err != nil || string(out) != "49 100\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A window without a size, which clients without a terminal send, and one larger than a
// terminal can be: the session continues, and the next size is applied.
func TestWindowsOfNoSizeAndOfAny(t *testing.T) {
	n := start(t)
	ch, reqs, err := n.login(n.ann()).OpenChannel("session", nil)
	n.must(err)
	go ssh.DiscardRequests(reqs)
	ok, err := ch.SendRequest("pty-req", true, ssh.Marshal(struct {
		Term       string
		W, H, X, Y uint32
		Modes      string
	}{Term: "xterm", Modes: string([]byte{53, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0})})) // neither echo nor opost
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	ok, err = ch.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"while read -r _; do stty size; done"}))
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	out := bufio.NewReader(ch)
	type window struct{ W, H, X, Y uint32 }
	for _, c := range []struct {
		size *window
		want string
	}{{nil, "0 0\n"}, {&window{100, 30, 0, 0}, "30 100\n"}, {&window{}, "0 0\n"}, {&window{1 << 31, 1<<32 - 1, 1 << 20, 1 << 16}, "65535 65535\n"}, {&window{80, 24, 0, 0}, "24 80\n"}} {
		if c.size != nil {
			_, err := ch.SendRequest("window-change", false, ssh.Marshal(*c.size))
			n.must(err)
		}
		// The size may arrive after a line that was sent later.
		eventually.Holds(t, "the size "+strings.TrimSpace(c.want), func() bool {
			_, err := io.WriteString(ch, "\n")
			n.must(err)
			got, err := out.ReadString('\n')
			n.must(err)
			return got == c.want
		})
	}
}

func TestModesPixelsAndResize(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	ch, reqs, err := c.OpenChannel("session", nil)
	n.must(err)
	go ssh.DiscardRequests(reqs)
	modes := string([]byte{3, 0, 0, 0, 8, 53, 0, 0, 0, 0, 70, 0, 0, 0, 0, 91, 0, 0, 0, 1, 129, 0, 0, 0x96, 0, 0})
	payload := ssh.Marshal(struct {
		Term       string
		W, H, X, Y uint32
		Modes      string
	}{"vt100", 101, 51, 808, 612, modes})
	ok, err := ch.SendRequest("pty-req", true, payload)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	script := `trap 'stty size; exit' WINCH; stty -a | tr ';' '\n' | grep -E 'erase|speed'; stty -a | grep -oE -- '-?(echo|opost)\b' | tr '\n' ' '; echo ready; while :; do sleep 0.05; done`
	ok, err = ch.SendRequest("exec", true, ssh.Marshal(struct{ C string }{script}))
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	var got bytes.Buffer
	buf := make([]byte, 1)
	for !strings.Contains(got.String(), "ready\n") {
		if _, err := ch.Read(buf); err != nil {
			t.Fatalf("%v after %q", err, got.String())
		}
		got.Write(buf)
	}
	if text := got.String(); !strings.Contains(text, "erase = ^H") || !strings.Contains(text, "speed 38400") || !strings.Contains(text, "-echo ") || !strings.Contains(text, "-opost ") {
		t.Errorf("modes: %q", text)
	}
	_, err = ch.SendRequest("window-change", false, ssh.Marshal(struct{ W, H, X, Y uint32 }{77, 33, 0, 0}))
	n.must(err)
	rest, err := io.ReadAll(ch)
	if err != nil || string(rest) != "33 77\n" {
		t.Errorf("after the resize: %q, %v", rest, err)
	}
}

func TestSignalsAndExitSignal(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	s, err := c.NewSession()
	n.must(err)
	out, err := s.StdoutPipe()
	n.must(err)
	n.must(s.Start(`trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.05; done`))
	buf := make([]byte, 6)
	_, err = io.ReadFull(out, buf)
	n.must(err)
	n.must(s.Signal(ssh.SIGUSR1))
	rest, _ := io.ReadAll(out)
	var exit *ssh.ExitError
	if err := s.Wait(); !asError(err, &exit) || exit.ExitStatus() != 3 || string(rest) != "got it\n" {
		t.Errorf("%v, %q", err, rest)
	}
	s, err = c.NewSession()
	n.must(err)
	if err := s.Run("kill -SEGV $$"); !asError(err, &exit) || exit.Signal() != "SEGV" {
		t.Errorf("exit-signal: %v", err)
	}
}

// Unsolicited replies, and messages for channels that do not exist, end at most that
// connection.
func TestS07UnrequestedResponses(t *testing.T) {
	have(t, "python3")
	if exec.Command(python, "-c", "import paramiko").Run() != nil {
		t.Skip("needs python3-paramiko")
	}
	n := start(t)
	other := n.login(n.ann())
	script := filepath.Join(n.dir, "attack.py")
	n.must(os.WriteFile(script, []byte(`
import sys, paramiko, struct
from paramiko.message import Message
for kind in range(80, 101):
    for body in (b"", b"\x00" * 4, b"\xff" * 4, b"\x00\x00\x00\x07" + b"\xff" * 12):
        t = paramiko.Transport(("127.0.0.1", int(sys.argv[1])))
        t.connect(username="ann", pkey=paramiko.Ed25519Key.from_private_key_file(sys.argv[2]))
        try:
            for _ in range(20):
                m = Message()
                m.add_byte(bytes([kind]))
                m.add_bytes(body)
                t._send_message(m)
        except (OSError, EOFError, paramiko.SSHException):
            pass
        t.close()
print("sent")
`), 0o644))
	if out := combined(t, exec.CommandContext(t.Context(), python, "-W", "ignore", script, n.port(), n.ann().keyFile)); !strings.Contains(out, "sent") {
		t.Fatal(out)
	}
	if got := run(t, other, "echo alive"); got != "alive" {
		t.Errorf("another's connection: %q", got)
	}
	if n.metric("berth_login_panics_total") != "0" {
		t.Error("a message made the server panic")
	}
}
