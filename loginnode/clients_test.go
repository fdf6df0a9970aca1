package loginnode_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// output2 runs a client program and returns its output.
func (n *node) output2(cmd *exec.Cmd) string {
	n.t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.WaitDelay = 5 * time.Second
	if cmd.SysProcAttr == nil { // no terminal on which ssh could ask for a password
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	giveUp := time.AfterFunc(2*deadline, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, errs.Bytes())
	}
	return string(out)
}

func TestDropbear(t *testing.T) {
	have(t, "dbclient", "dropbearconvert")
	n := start(t)
	key := n.ann().keyFile + ".dropbear"
	n.output2(exec.Command("dropbearconvert", "openssh", "dropbear", n.ann().keyFile, key))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dbclient", "-y", "-y", "-i", key, "-p", n.port(), "ann@127.0.0.1", "echo $USER; exit 3")
	cmd.Env = append(os.Environ(), "HOME="+n.dir)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "ann\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestPuTTY(t *testing.T) {
	have(t, "plink", "puttygen", "ssh-keygen")
	n := start(t)
	ppk := n.ann().keyFile + ".ppk"
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	n.output2(exec.CommandContext(ctx, "puttygen", n.ann().keyFile, "-O", "private", "-o", ppk))
	fingerprint := strings.Fields(n.output2(exec.Command("ssh-keygen", "-lf", n.hostKeyFile())))[1]
	cmd := exec.CommandContext(ctx, "plink", "-batch", "-hostkey", fingerprint, "-i", ppk, "-P", n.port(), "ann@127.0.0.1", "echo $USER")
	cmd.Env = append(os.Environ(), "HOME="+n.dir)
	if got := n.output2(cmd); got != "ann\n" {
		t.Errorf("%q", got)
	}
}

func (n *node) hostKeyFile() string {
	file := filepath.Join(n.dir, "host.pub")
	n.must(os.WriteFile(file, marshalKey(n.host.PublicKey()), 0o644))
	return file
}

const paramikoScript = `
import paramiko, sys
c = paramiko.SSHClient()
c.set_missing_host_key_policy(paramiko.AutoAddPolicy())
c.connect("127.0.0.1", port=int(sys.argv[1]), username="ann", key_filename=sys.argv[2], look_for_keys=False, allow_agent=False)
i, o, e = c.exec_command("cat; echo $USER", get_pty=False)
i.write("sent "); i.channel.shutdown_write()
print(o.read().decode(), end="")
s = c.open_sftp(); s.file("p", "w").write("by paramiko"); print(s.file("p").read().decode())
`

// python is Debian's, for which python3-paramiko is.
const python = "/usr/bin/python3"

func TestParamiko(t *testing.T) {
	have(t, python)
	if exec.Command(python, "-c", "import paramiko").Run() != nil {
		t.Skip("needs python3-paramiko")
	}
	n := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	got := n.output2(exec.CommandContext(ctx, python, "-W", "ignore", "-c", paramikoScript, n.port(), n.ann().keyFile))
	if got != "sent ann\nby paramiko\n" {
		t.Errorf("%q", got)
	}
}

func TestS05Algorithms(t *testing.T) {
	have(t, "ssh-audit")
	n := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	// Its exit code depends on warnings, too.
	out, _ := exec.CommandContext(ctx, "ssh-audit", "-n", "-b", "-p", n.port(), "127.0.0.1").CombinedOutput()
	text := string(out)
	if !strings.Contains(text, "curve25519-sha256") || !strings.Contains(text, "aes128-gcm") {
		t.Fatalf("no report:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "[fail]") {
			t.Errorf("%s", line)
		}
	}
	for _, want := range []string{"mlkem768x25519-sha256", "kex-strict-s-v00@openssh.com"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not offered", want)
		}
	}
	for _, bad := range []string{"sha1", "cbc", "ssh-dss", "nistp", "hmac-sha2-256 "} {
		if strings.Contains(text, bad) {
			t.Errorf("%s is offered:\n%s", bad, text)
		}
	}
	for _, refused := range [][2]string{{"KexAlgorithms", "diffie-hellman-group14-sha256"}, {"Ciphers", "aes128-cbc"}, {"MACs", "hmac-sha2-256"}, {"MACs", "hmac-sha1"}} {
		args := []string{"-o", refused[0] + "=" + refused[1]}
		if refused[0] == "MACs" {
			args = append(args, "-o", "Ciphers=aes128-ctr")
		}
		if out, err := n.ssh(n.ann(), append(args, "true")...).CombinedOutput(); err == nil {
			t.Errorf("%v was negotiated: %s", refused, out)
		}
	}
}

func TestControlMaster(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	ctl := filepath.Join(n.dir, "ctl")
	master := n.ssh(n.ann(), "-M", "-S", ctl, "-N")
	n.must(master.Start())
	defer func() { _ = master.Process.Kill(); _ = master.Wait() }()
	eventually.Holds(t, "the master connection exists", func() bool { _, err := os.Stat(ctl); return err == nil })
	const sessions = 64
	var all sync.WaitGroup
	for i := range sessions {
		all.Add(1)
		go func() {
			defer all.Done()
			out, err := n.ssh(n.ann(), "-S", ctl, "-o", "ControlMaster=no", "echo "+itoa(i)).CombinedOutput()
			if err != nil || string(out) != itoa(i)+"\n" {
				t.Errorf("session %d: %q, %v", i, out, err)
			}
		}()
	}
	all.Wait()
	if in := n.audit.find(t, "login"); len(in) != 1 {
		t.Errorf("%d connections for %d sessions", len(in), sessions)
	}
}

// A client that requests one session more than a connection may have opens a connection
// of its own for it, at once: OpenSSH's client does so when the session is refused.
func TestSessionBeyondTheLimitGetsANewConnection(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	ctl := filepath.Join(n.dir, "ctl")
	master := n.ssh(n.ann(), "-M", "-S", ctl, "-N")
	n.must(master.Start())
	defer func() { _ = master.Process.Kill(); _ = master.Wait() }()
	eventually.Holds(t, "the master connection exists", func() bool { _, err := os.Stat(ctl); return err == nil })
	for i := range 64 {
		cmd := n.ssh(n.ann(), "-S", ctl, "echo "+itoa(i)+"; exec cat")
		in, err := cmd.StdinPipe()
		n.must(err)
		out, err := cmd.StdoutPipe()
		n.must(err)
		n.must(cmd.Start())
		defer func() { in.Close(); _ = cmd.Wait() }()
		if line, err := bufio.NewReader(out).ReadString('\n'); line != itoa(i)+"\n" {
			t.Fatalf("session %d: %q, %v", i, line, err)
		}
	}
	cmd := n.ssh(n.ann(), "-S", ctl, "echo one more; exit 9")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 9 || out.String() != "one more\n" {
		t.Errorf("%v: %q, %q", err, out.String(), errs.String())
	}
	if in := n.audit.find(t, "login"); len(in) != 2 {
		t.Errorf("%d connections", len(in))
	}
}

func TestForwardingWithOpenSSH(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	web := listenTCP(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })}
	go func() { _ = srv.Serve(web) }()
	defer srv.Close()
	free := listenTCP(t)
	local := free.Addr().String()
	free.Close()
	free = listenTCP(t)
	socks := free.Addr().String()
	free.Close()
	free = listenTCP(t)
	remote := free.Addr().(*net.TCPAddr).Port
	free.Close()
	sock := filepath.Join(n.ann().Home, "fwd.sock")
	cmd := n.ssh(n.ann(), "-N", "-o", "ExitOnForwardFailure=yes", "-L", local+":"+web.Addr().String(), "-D", socks,
		"-R", itoa(remote)+":"+web.Addr().String(), "-R", sock+":"+web.Addr().String())
	n.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	get := func(args ...string) string {
		out, err := exec.Command("curl", append([]string{"-sS", "--max-time", "20"}, args...)...).CombinedOutput()
		if err != nil {
			return err.Error() + string(out)
		}
		return string(out)
	}
	have(t, "curl")
	for name, args := range map[string][]string{
		"-L": {"http://" + local}, "-D": {"--socks5-hostname", socks, "http://" + web.Addr().String()},
		"-R": {"http://127.0.0.1:" + itoa(remote)}, "-R socket": {"--unix-socket", sock, "http://x"},
	} {
		var got string
		eventually.Holds(t, name, func() bool { got = get(args...); return got == "page" })
	}
	out := n.output2(n.withInput(n.ssh(n.ann(), "-W", web.Addr().String()), "GET / HTTP/1.0\r\n\r\n"))
	if !strings.HasSuffix(out, "page") {
		t.Errorf("-W: %q", out)
	}
}

func (n *node) withInput(cmd *exec.Cmd, in string) *exec.Cmd {
	cmd.Stdin = strings.NewReader(in)
	return cmd
}

// VS Code's Remote-SSH: no terminal, a SOCKS port, a shell that reads its
// commands, a server in the background that outlives it, then a forwarded port.
func TestRemoteEditorsPattern(t *testing.T) {
	have(t, "ssh", "curl", "python3")
	n := start(t)
	free := listenTCP(t)
	socks := free.Addr().String()
	free.Close()
	cmd := n.ssh(n.ann(), "-T", "-D", socks, "bash")
	in, err := cmd.StdinPipe()
	n.must(err)
	out, err := cmd.StdoutPipe()
	n.must(err)
	n.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	_, err = io.WriteString(in, `mkdir -p .vscode && cd .vscode && echo served > f
nohup python3 -c 'import http.server as h, sys
s = h.ThreadingHTTPServer(("127.0.0.1", 0), h.SimpleHTTPRequestHandler); open("port.new", "w").write(str(s.server_port))
import os; os.rename("port.new", "port"); s.serve_forever()' >/dev/null 2>&1 </dev/null & echo $! > pid
while [ ! -e port ]; do sleep 0.1; done; echo listeningOn=$(cat port)==; cat pid
`)
	n.must(err)
	var port, pid int
	_, err = fmt.Fscanf(out, "listeningOn=%d==\n%d\n", &port, &pid)
	n.must(err)
	defer func() { _ = exec.Command("kill", "-9", itoa(pid)).Run() }()
	got, err := exec.Command("curl", "-sS", "--max-time", "20", "--socks5-hostname", socks, fmt.Sprintf("http://127.0.0.1:%d/f", port)).CombinedOutput()
	if err != nil || string(got) != "served\n" {
		t.Errorf("%q, %v", got, err)
	}
	in.Close()
	n.must(cmd.Wait())
	if got := n.output(n.ann(), "kill -0 "+itoa(pid)+" && echo alive"); got != "alive" {
		t.Errorf("the background server: %q", got)
	}
}

func TestRekeying(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	file := n.noise("big", 20<<20)
	in, err := os.Open(file)
	n.must(err)
	defer in.Close()
	cmd := n.ssh(n.ann(), "-o", "RekeyLimit=500K", "cat")
	cmd.Stdin = in
	sum := sha256.New()
	cmd.Stdout = sum
	n.must(cmd.Run())
	data, err := os.ReadFile(file)
	n.must(err)
	if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("bytes were lost over the rekeyings")
	}
}
