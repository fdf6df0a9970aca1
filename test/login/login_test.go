package login

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
)

// deadline is the timeout of a client. It is far longer than any client takes on a busy machine.
const deadline = eventually.Timeout

// site is a local cluster with a login node.
type site struct {
	t    *testing.T
	dir  string
	line []string // the printed ssh command, without the user
	user string
	kube *kube.Client
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"berth", "berth-local", "loginnode", "sbatch", "squeue"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			t.Skipf("needs `make build`: %v", err)
		}
	}
	return root
}

// up starts a cluster; as root with a new user, who is removed later.
func up(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("needs ssh")
	}
	bin := filepath.Join(repository(t), "bin")
	dir, err := os.MkdirTemp("", "berth-login")
	must(t, err)
	must(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir}
	args := []string{"up", "--state-dir", filepath.Join(dir, "s"), "--login", "--nodes", "2", "--cpus", "2", "--memory", "1000M"}
	if os.Geteuid() == 0 {
		s.user = fmt.Sprintf("lnt%d", os.Getpid())
		// Not below a private directory: its owner must be able to access the home.
		output(t, exec.Command("useradd", "-m", "-d", filepath.Join(dir, "home"), "-s", "/bin/bash", s.user))
		t.Cleanup(func() { _ = exec.Command("userdel", "-f", s.user).Run() })
		args = append(args, "--user", s.user)
	}
	t.Cleanup(func() {
		_ = exec.Command(filepath.Join(bin, "berth"), "down", "--state-dir", filepath.Join(dir, "s")).Run()
	})
	text := output(t, exec.Command(filepath.Join(bin, "berth"), args...))
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "log in: ssh "); ok {
			f := strings.Fields(rest)
			last := f[len(f)-1]
			s.line = append(f[:len(f)-1], "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")
			if s.user == "" {
				s.user = strings.Split(last, "@")[0]
			}
		}
	}
	if s.line == nil {
		t.Fatalf("no line to log in:\n%s", text)
	}
	p := stdio.System()
	s.kube, err = kube.Connect(p, filepath.Join(dir, "s", "kubeconfig"))
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, both.Bytes())
	}
	return both.String()
}

// ssh runs a command on the login node with the generated key, or another.
func (s *site) ssh(command string, options ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	defer cancel()
	args := append(append([]string{}, s.line...), options...)
	cmd := exec.CommandContext(ctx, "ssh", append(args, s.user+"@127.0.0.1", command)...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *site) run(command string, options ...string) string {
	s.t.Helper()
	out, err := s.ssh(command, options...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// One cluster is used for all parts, because starting it takes most of the time.
func TestLogin(t *testing.T) {
	s := up(t)
	t.Run("jobs", s.jobs)
	t.Run("identity", s.identity)
	t.Run("nodes", s.nodes)
	t.Run("pods", s.pods)
	t.Run("signals", s.signals)
	t.Run("message", s.message)
	t.Run("terminal", s.terminal)
	t.Run("keys", s.keys)
	t.Run("users", s.users)
	t.Run("killed", s.killed)
	t.Run("cluster killed", s.clusterKilled)
}

func (s *site) jobs(t *testing.T) {
	uid := strings.TrimSpace(s.run("id -u"))
	out := s.run(`cd && printf '#!/bin/sh\nid -u\n' > job.sh && sbatch -o out.%j job.sh`)
	if !strings.HasPrefix(out, "Submitted batch job ") {
		t.Fatalf("sbatch right after login: %s", out)
	}
	id := strings.TrimSpace(strings.TrimPrefix(out, "Submitted batch job "))
	eventually.Holds(t, "the job writes its output", func() bool {
		got, err := s.ssh("cat out." + id)
		return err == nil && strings.TrimSpace(got) == uid
	})
}

// identity: the token is that of the user's ServiceAccount, other users cannot read it,
// and the server's own is not accessible.
func (s *site) identity(t *testing.T) {
	out := s.run(`cd "$(dirname "$KUBECONFIG")" && stat -c '%a %u' . kubeconfig token && cat token`)
	f := strings.Fields(out)
	uid := strings.TrimSpace(s.run("id -u"))
	if len(f) != 7 || f[0] != "700" || f[2] != "600" || f[4] != "600" || f[1] != uid || f[5] != uid {
		t.Fatalf("the credential's files: %s", out)
	}
	parts := strings.Split(f[6], ".")
	if len(parts) != 3 {
		t.Fatal("the token is no JWT")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var c struct {
		Sub      string
		Iat, Exp int64
	}
	must(t, json.Unmarshal(claims, &c))
	if c.Sub != "system:serviceaccount:user-"+s.user+":berth-job" || c.Exp-c.Iat > 2*3600 {
		t.Errorf("claims: %s", claims)
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range []string{"kubeconfig", "login/kubeconfig", "login/id_ed25519", "login/hostkeys/ssh_host_ed25519_key", "login/audit.json"} {
		if out, err := s.ssh("cat " + filepath.Join(s.dir, "s", name)); err == nil {
			t.Errorf("the user reads %s: %s", name, out)
		}
	}
	// Only root can read the server's kubeconfig.
	server := s.identityOfLogin(t)
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets", "/apis/berth.hpc/v1alpha1/batchjobs", "/api/v1/pods"} {
		if err := server.Get(t.Context(), path, nil, nil); kube.KindOf(err) != kube.Forbidden {
			t.Errorf("the login node's identity and %s: %v", path, err)
		}
	}
	err = server.Post(t.Context(), "/api/v1/namespaces/user-"+s.user+"/serviceaccounts/default/token", nil,
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}, nil)
	if kube.KindOf(err) != kube.Forbidden {
		t.Errorf("a token of another ServiceAccount: %v", err)
	}
}

// identityOfLogin is a client with the login node's own rights.
func (s *site) identityOfLogin(t *testing.T) *kube.Client {
	c, err := kube.Connect(stdio.System(), filepath.Join(s.dir, "s", "login", "kubeconfig"))
	must(t, err)
	return c
}

// signals: a session ignores no signal that ends it with its terminal, or with the
// other end of a pipe.
func (s *site) signals(t *testing.T) {
	f := strings.Fields(s.run("grep SigIgn: /proc/self/status"))
	mask, err := strconv.ParseUint(f[len(f)-1], 16, 64)
	must(t, err)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGPIPE} {
		if mask&(1<<(sig-1)) != 0 {
			t.Errorf("%v is ignored", sig)
		}
	}
}

// message: only interactive logins show the queue.
func (s *site) message(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh", append(append([]string{"-tt"}, s.line...), s.user+"@127.0.0.1")...)
	cmd.Stdin = strings.NewReader("exit\n")
	cmd.WaitDelay = 5 * time.Second
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "JOBID PARTITION") {
		t.Errorf("interactive: %q", out)
	}
	if out := s.run("true"); out != "" {
		t.Errorf("a command: %q", out)
	}
}

// keys: keys of the User object, of ConfigMaps and of Secrets are accepted while they are stored
// there, without a restart of the login node.
func (s *site) keys(t *testing.T) {
	key := filepath.Join(s.dir, "other")
	output(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key))
	public, err := os.ReadFile(key + ".pub")
	must(t, err)
	line := strings.TrimSpace(string(public))
	enters := func() bool {
		args := []string{"-i", key, "-o", "IdentitiesOnly=yes"}
		old := s.line
		defer func() { s.line = old }()
		s.line = nil
		for i := 0; i < len(old); i++ {
			if old[i] == "-i" {
				i++
				continue
			}
			s.line = append(s.line, old[i])
		}
		_, err := s.ssh("true", args...)
		return err == nil
	}
	if enters() {
		t.Fatal("the login succeeded with an unknown key")
	}
	change := func(keys []string) {
		must(t, s.kube.MergePatch(t.Context(), "/apis/berth.hpc/v1alpha1/users/"+s.user, map[string]any{"spec": map[string]any{"sshKeys": keys}}, nil))
	}
	change([]string{line})
	eventually.Holds(t, "the key of the User object is accepted", enters)
	change([]string{})
	eventually.Holds(t, "the key is not accepted any more", func() bool { return !enters() })
	for kind, data := range map[string]string{"ConfigMap": line, "Secret": base64.StdEncoding.EncodeToString([]byte(line))} {
		path := "/api/v1/namespaces/berth-login/" + strings.ToLower(kind) + "s"
		must(t, s.kube.Post(t.Context(), path, nil, map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "more", "labels": map[string]any{"berth.hpc/ssh-keys": "true"}},
			"data": map[string]any{s.user: data},
		}, nil))
		eventually.Holds(t, "the key of a "+kind+" is accepted", enters)
		must(t, s.kube.MergePatch(t.Context(), path+"/more", map[string]any{"data": map[string]any{s.user: nil}}, nil))
		eventually.Holds(t, "the key of a "+kind+" is not accepted any more", func() bool { return !enters() })
	}
}
