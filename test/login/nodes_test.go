package login

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// onNode runs OpenSSH's client with the configuration that `berth up --login` has
// written, in which every name but login is a node. Options of the command line do not
// apply to the connection to the login node.
func (s *site) onNode(program string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	s.t.Cleanup(cancel)
	config := filepath.Join(s.dir, "ssh_config")
	text := "User " + s.user + "\nBatchMode yes\nInclude " + filepath.Join(s.dir, "s", "login", "ssh_config") + "\n"
	must(s.t, os.WriteFile(config, []byte(text), 0o644))
	cmd := exec.CommandContext(ctx, program, append([]string{"-F", config}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// nodes: a user with a job on a node can connect to it, from the start of the job to
// its end, and no other user can; the commands run in the job.
func (s *site) nodes(t *testing.T) {
	defer func(was *testing.T) { s.t = was }(s.t)
	s.t = t
	const denied = "Access denied by Berth: you have no active jobs on this node"
	out, err := s.onNode("ssh", "n2", "true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), denied) {
		t.Fatalf("without a job: %v: %s", err, out)
	}
	id := strings.TrimSpace(s.run("sbatch --parsable -w n2 -N1 --mem=200 --wrap 'sleep 1000'"))
	eventually.Holds(t, "the job runs", func() bool { return strings.TrimSpace(s.run("squeue -h -o %T -j "+id)) == "RUNNING" })

	text := output(t, s.onNode("ssh", "n2", "echo $SLURM_JOB_ID $SLURMD_NODENAME; id -u; pwd; tty || true"))
	want := id + " n2\n" + strings.TrimSpace(s.run("id -u")) + "\n" + strings.TrimSpace(s.run("pwd")) + "\nnot a tty\n"
	if text != want {
		t.Errorf("a command prints %q, want %q", text, want)
	}
	cmd := s.onNode("ssh", "n2", "cat; exit 7")
	cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("\x00\xff\r\n"), 1<<16))
	got, err := cmd.Output()
	if len(got) != 4<<16 || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%d bytes came back (%v), exit code %d", len(got), err, cmd.ProcessState.ExitCode())
	}
	if out, _ := s.onNode("ssh", "n1", "true").CombinedOutput(); !strings.Contains(string(out), denied) {
		t.Errorf("another node: %s", out)
	}
	s.shellOnNode(t, id)
	s.filesOnNode(t)
	s.webOnNode(t, id)
	if out := s.run("srun --jobid="+id+" --overlap --pty bash -c 'tty; echo $SLURM_JOB_ID'", "-tt"); !strings.Contains(out, "/dev/pts/") || !strings.Contains(out, id) {
		t.Errorf("srun --overlap --pty: %q", out)
	}
	s.run("scancel " + id)
	eventually.Holds(t, "the node refuses connections again", func() bool {
		out, err := s.onNode("ssh", "n2", "true").CombinedOutput()
		return err != nil && strings.Contains(string(out), denied)
	})
}

// shellOnNode: a login shell on a terminal, which ends with the job.
func (s *site) shellOnNode(t *testing.T, id string) {
	cmd := s.onNode("ssh", "-tt", "n2")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.WriteString(in, "shopt -q login_shell && stty rows 33 && echo job''=$SLURM_JOB_ID $(stty size)\nexit 3\n")
	must(t, err)
	text, _ := io.ReadAll(out)
	_ = cmd.Wait()
	if !strings.Contains(string(text), "job="+id+" 33 ") || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), text)
	}
}

// webOnNode: with -L to localhost the user reaches a server, such as a notebook's, that listens
// only on the job's loopback, and not from a node without a job.
func (s *site) webOnNode(t *testing.T, id string) {
	for _, p := range []string{"python3", "curl"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Logf("a web server in a job was not tested: %v", err)
			return
		}
	}
	// Nodes that are processes share this machine's loopback, so the port is
	// one that is free.
	remote, local := freePort(t), freePort(t)
	s.run("mkdir -p web && echo served > web/page && (srun --jobid=" + id + " --overlap --chdir=$HOME/web python3 -m http.server --bind 127.0.0.1 " + remote + " >/dev/null 2>&1 </dev/null &)")
	cmd := s.onNode("ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-L", local+":localhost:"+remote, "n2")
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	eventually.Holds(t, "the server in the job sends the page", func() bool {
		out, _ := exec.Command("curl", "-sS", "--max-time", "20", "http://127.0.0.1:"+local+"/page").Output()
		return string(out) == "served\n"
	})
	if out, err := s.onNode("ssh", "-W", "localhost:"+freePort(t), "n2").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") {
		t.Errorf("a port without a listener: %v: %s", err, out)
	}
	if out, err := s.onNode("ssh", "-W", "localhost:"+remote, "n1").CombinedOutput(); err == nil || strings.Contains(string(out), "HTTP/") {
		t.Errorf("by way of a node without a job: %v: %s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func (s *site) filesOnNode(t *testing.T) {
	from := filepath.Join(s.dir, "from")
	must(t, os.WriteFile(from, bytes.Repeat([]byte("\x00\xff\r\nfile"), 1<<15), 0o644))
	options := [][]string{{"-O"}}
	if _, err := os.Stat("/usr/lib/openssh/sftp-server"); err == nil {
		options = append(options, []string{"-s"})
	}
	for _, o := range options {
		to := filepath.Join(s.dir, "back"+o[0])
		output(t, s.onNode("scp", append(o, from, "n2:there")...))
		output(t, s.onNode("scp", append(o, "n2:there", to)...))
		a, err1 := os.ReadFile(from)
		b, err2 := os.ReadFile(to)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("scp %s: %d and %d bytes, %v, %v", o[0], len(a), len(b), err1, err2)
		}
	}
}
