package login

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// nobody is the uid of a gateway without privileges.
const nobody = 65534

// gateway is a login node whose users have pods, in addition to that of the cluster.
type gateway struct {
	*site
	bin, dir, port string
}

// pods: the sessions run in a pod of the user, with the user's rights; the login node has no
// rights of root.
func (s *site) pods(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a login node that runs as nobody, and pods of users")
	}
	defer func(was *testing.T) { s.t = was }(s.t)
	s.t = t
	g := s.gateway(t)
	started := time.Now()
	out, errs, err := g.ssh("id -u; cd; pwd; hostname; touch from-the-pod; cat $KUBECONFIG | grep -c tokenFile; sbatch --parsable -o /dev/null --wrap true; true")
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	f := strings.Fields(out)
	if len(f) != 5 || f[0] != strings.TrimSpace(s.run("id -u")) || f[1] != s.home() || !strings.HasPrefix(f[2], "login-") || f[3] != "1" {
		t.Errorf("in the pod: %q", out)
	}
	if _, err := strconv.Atoi(f[4]); err != nil {
		t.Errorf("sbatch in the pod: %q", out)
	}
	onlyStartMessage(t, errs)
	t.Logf("the first login, to a pod that starts, took %.2f s", time.Since(started).Seconds())
	started = time.Now()
	if out, errs, err := g.ssh("hostname; grep CapEff /proc/self/status"); err != nil || errs != "" || !strings.HasPrefix(out, f[2]) || !strings.Contains(out, "0000000000000000") {
		t.Errorf("the second login: %v, %q, %q", err, out, errs)
	}
	t.Logf("the second took %.2f s", time.Since(started).Seconds())
	g.restricted(t)
	g.idle(t)
	g.named(t) // with a pod of its own
}

// named: a user that exists only in the cluster has a name in the pod, and so have the
// groups; otherwise scp -O and other programs fail.
func (g *gateway) named(t *testing.T) {
	public, err := os.ReadFile(filepath.Join(g.site.dir, "s", "login", "id_ed25519.pub"))
	must(t, err)
	const path, name = "/apis/berth.hpc/v1alpha1/users", "lnt-named"
	must(t, g.kube.Post(t.Context(), path, nil, map[string]any{
		"apiVersion": "berth.hpc/v1alpha1", "kind": "User", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"uid": 64010, "gid": 64011, "groups": []any{map[string]any{"name": "lntchem", "gid": 64012}}, "namespace": "default",
			"home": "/tmp", "shell": "/bin/sh", "sshKeys": []string{string(public)},
		},
	}, nil))
	t.Cleanup(func() { _ = g.kube.Delete(context.WithoutCancel(t.Context()), path+"/"+name) })
	own := g.user
	g.user = name
	defer func() { g.user = own }()
	var out, errs string
	eventually.Holds(t, "a user who exists only in the cluster can log in", func() bool {
		out, errs, err = g.ssh("whoami; id -gn; id -Gn; getent passwd 64010; getent passwd root | cut -d: -f1 ; test -w /etc/passwd || echo read-only")
		return err == nil
	})
	const want = "lnt-named\nlnt-named\nlnt-named lntchem\nlnt-named:x:64010:64011::/tmp:/bin/sh\nroot\nread-only\n"
	if out != want {
		t.Errorf("in the pod: %q, %s", out, errs)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("contents"), 0o644))
	target := filepath.Join("/tmp", filepath.Base(g.site.dir)+"-named")
	t.Cleanup(func() { _ = os.Remove(target) })
	for _, c := range []string{"scp -O", "scp", "rsync"} {
		args := append(strings.Fields(c), "-F", filepath.Join(g.dir, "ssh_config"), "-o", "ProxyJump=none")
		if c == "rsync" {
			if _, err := exec.LookPath("rsync"); err != nil {
				continue
			}
			args = []string{"rsync", "-e", "ssh -o ProxyJump=none -F " + filepath.Join(g.dir, "ssh_config")}
		}
		output(t, exec.Command(args[0], append(args[1:], file, "pod:"+target)...))
	}
	if got, _, err := g.ssh("cat " + target + ""); !strings.HasPrefix(got, "contents") {
		t.Errorf("the copied file: %q, %v", got, err)
	}
}

// onlyStartMessage fails the test if a login has printed anything but the message that the pod
// starts.
func onlyStartMessage(t *testing.T, errs string) {
	t.Helper()
	if errs != "" && !strings.Contains(errs, "your login pod is starting") {
		t.Errorf("a login prints %q", errs)
	}
}

func (s *site) gateway(t *testing.T) *gateway {
	g := &gateway{site: s, bin: filepath.Join(repository(t), "bin"), dir: filepath.Join(s.dir, "gateway")}
	must(t, os.MkdirAll(filepath.Join(g.dir, "hostkeys"), 0o700))
	for from, to := range map[string]string{"kubeconfig": "kubeconfig", "hostkeys/ssh_host_ed25519_key": "hostkeys/ssh_host_ed25519_key"} {
		data, err := os.ReadFile(filepath.Join(s.dir, "s", "login", from))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(g.dir, to), data, 0o600))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, g.port, err = net.SplitHostPort(l.Addr().String())
	must(t, err)
	must(t, l.Close())
	must(t, os.WriteFile(filepath.Join(g.dir, "loginnode.yaml"), fmt.Appendf(nil, `
listen: ["127.0.0.1:%s"]
hostKeys: %[2]s/hostkeys
runDir: %[2]s/run
audit: %[2]s/audit.json
users: [{cluster: true}]
path: %[3]s:/usr/local/bin:/usr/bin:/bin
perSourcePenalties: {exempt: [127.0.0.0/8]}
drainGrace: 1s
cluster: {kubeconfig: %[2]s/kubeconfig, keysNamespace: berth-login, server: "%[4]s"}
pods:
  program: %[3]s/loginnode
  idle: 4s
  spec: {containers: [{image: berth.hpc/host, resources: {requests: {cpu: 10m}}}]}
`, g.port, g.dir, g.bin, strings.TrimSpace(s.run("srun -n1 sh -c 'echo $BERTH_KUBE_HOST'"))), 0o600))
	must(t, filepath.WalkDir(g.dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(p, nobody, nobody)
	}))
	cmd := exec.Command(filepath.Join(g.bin, "loginnode"), "--config", filepath.Join(g.dir, "loginnode.yaml"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true}
	var log strings.Builder
	cmd.Stderr = &log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually.Holds(t, "the gateway answers", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+g.port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return g
}

// ssh runs a command in the user's pod.
func (g *gateway) ssh(command string) (out, errs string, err error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), deadline)
	defer cancel()
	config := filepath.Join(g.dir, "ssh_config")
	text := "Host pod\n HostName 127.0.0.1\n Port " + g.port + "\n HostKeyAlias berth-nodes\n User " + g.user + "\n BatchMode yes\n" +
		"Include " + filepath.Join(g.site.dir, "s", "login", "ssh_config") + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", "", err
	}
	cmd := exec.CommandContext(ctx, "ssh", "-F", config, "-o", "ProxyJump=none", "pod", command)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return o.String(), e.String(), err
}

// restricted: with the login node's identity only restricted pods can be created, and
// only in their own namespace.
func (g *gateway) restricted(t *testing.T) {
	for _, try := range []struct{ namespace, as string }{{"berth-login-pods", "root"}, {"user-" + g.user, "user"}, {"default", "user"}} {
		spec := map[string]any{"containers": []any{map[string]any{"name": "x", "image": "berth.hpc/host", "command": []string{"true"}}}}
		if try.as == "root" {
			spec["securityContext"] = map[string]any{"runAsUser": 0}
		}
		err := g.identityOfLogin(t).Post(t.Context(), "/api/v1/namespaces/"+try.namespace+"/pods", nil, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "attack"}, "spec": spec,
		}, nil)
		if err == nil {
			t.Errorf("created a pod as %s in %s", try.as, try.namespace)
		}
	}
}

// idle: processes that a session has left keep the pod running; without them the pod is
// deleted.
func (g *gateway) idle(t *testing.T) {
	out, errs, err := g.ssh("setsid sleep 1000 > /dev/null 2>&1 < /dev/null & echo $!")
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	left := strings.TrimSpace(out)
	for range 4 { // longer than the pod may be idle
		time.Sleep(2 * time.Second)
		if n := g.count(t); n != 1 {
			t.Fatalf("%d pods while a process lives", n)
		}
	}
	if _, errs, err := g.ssh("kill " + left); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	eventually.Holds(t, "the idle pod is deleted", func() bool { return g.count(t) == 0 })
	_, errs, err = g.ssh("true")
	if err != nil {
		t.Errorf("the next login: %v, %q", err, errs)
	}
	onlyStartMessage(t, errs)
}

// count is how many login pods there are.
func (g *gateway) count(t *testing.T) int {
	var list struct{ Items []struct{} }
	must(t, g.kube.Get(t.Context(), "/api/v1/namespaces/berth-login-pods/pods", nil, &list))
	return len(list.Items)
}
