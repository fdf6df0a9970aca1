package chart

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/eventually"
)

// scheduler is the process in place of the chart's pod.
type scheduler struct {
	t      *testing.T
	cmd    *exec.Cmd
	health string
	api    string // host:port of admission, queue API and agents
}

var flagValue = regexp.MustCompile(`^(--[a-z-]+)=(.*)$`)

// withDirectory returns the flag by which a scheduler reads users from a file, so that it has
// the metrics of directories.
func withDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"users.yaml":     "users: [{name: dora, uid: 2001, gid: 2001}]\n",
		"directory.yaml": "sources: [{name: staff, file: {path: " + filepath.Join(dir, "users.yaml") + "}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "--directory=" + filepath.Join(dir, "directory.yaml")
}

// startScheduler runs the scheduler with the Deployment's flags, as its ServiceAccount,
// and waits until it leads. Flags that depend on a pod's network are changed, and more are
// added.
func (p *plain) startScheduler(more ...string) *scheduler {
	p.t.Helper()
	s := p.start("berth-scheduler", filepath.Join(p.t.TempDir(), "accounting.db"), more...)
	eventually.Holds(p.t, "the scheduler leads", func() bool { return s.get("/readyz") == "leading" })
	return s
}

// start runs a pod of a Deployment as a process, with its records in storage.
func (p *plain) start(deployment, storage string, more ...string) *scheduler {
	p.t.Helper()
	d, err := p.client.AppsV1().Deployments("berth-system").Get(p.t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	s := &scheduler{t: p.t, health: free(p.t), api: free(p.t)}
	own := map[string]string{
		"--public-url": "https://" + s.api, "--bind-address": s.api, "--health-address": s.health, "--jobset-webhook-address": free(p.t),
		"--pod": "", "--objects": p.configMap("berth-objects"), "--accounting-storage": storage,
	}
	args := []string{"--kubeconfig=" + p.account(d)}
	for _, a := range d.Spec.Template.Spec.Containers[0].Args {
		if m := flagValue.FindStringSubmatch(a); m != nil {
			if v, ok := own[m[1]]; ok {
				a = m[1] + "=" + v
			} else if m[1] == "--egress-policy" {
				a = m[1] + "=" + filepath.Join(p.configMap("berth-egress"), filepath.Base(m[2]))
			}
		}
		args = append(args, a)
	}
	s.cmd = exec.Command("../../bin/scheduler", append(args, more...)...)
	log, err := os.Create(filepath.Join(p.t.TempDir(), deployment+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		s.stop()
		if p.t.Failed() {
			b, _ := os.ReadFile(log.Name())
			p.t.Logf("%s:\n%s", deployment, b)
		}
	})
	return s
}

// stop ends the process; its lease is free then.
func (s *scheduler) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // its exit code does not matter here
}

func (s *scheduler) get(path string) string {
	r, err := http.Get("http://" + s.health + path) //nolint:noctx // on loopback
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	var b strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			return b.String()
		}
	}
}

// configMap writes a ConfigMap that the pod mounts to a directory.
func (p *plain) configMap(name string) string {
	p.t.Helper()
	m, err := p.client.CoreV1().ConfigMaps("berth-system").Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	for name, text := range m.Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	return dir
}

// account writes a kubeconfig of the Deployment's ServiceAccount.
func (p *plain) account(d *appsv1.Deployment) string {
	p.t.Helper()
	hours := int64(7200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	var token *authenticationv1.TokenRequest
	eventually.Holds(p.t, "a token", func() (ok bool) {
		var err error
		token, err = p.client.CoreV1().ServiceAccounts("berth-system").CreateToken(context.Background(), d.Spec.Template.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		return err == nil
	})
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, u := range config.AuthInfos {
		u.ClientCertificateData, u.ClientKeyData, u.Token = nil, nil, token.Status.Token
	}
	file := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// given are the addresses that free has returned. A standby binds its port only when it leads, so
// the kernel would return it again meanwhile.
var given sync.Map

// free returns an address on loopback that nobody uses, another one with each call.
func free(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // on loopback
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if _, known := given.LoadOrStore(address, true); !known {
			return address
		}
	}
}

// node creates a node that is ready, and renews its lease until the test ends: Kubernetes' node
// controller takes a node without one for lost after 50 seconds.
func (p *plain) node(name string) {
	p.t.Helper()
	p.must(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":%q},
		"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"10","nvidia.com/gpu":"2"},"conditions":[{"type":"Ready","status":"True"}]}}`, name))
	leases := p.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, RenewTime: &metav1.MicroTime{Time: time.Now()}}}
	if _, err := leases.Create(p.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	ctx := p.t.Context() // it ends before the cluster is stopped
	var renewing sync.WaitGroup
	p.t.Cleanup(renewing.Wait)
	renewing.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			renewal := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
			// If one fails, the next one will do.
			_, _ = leases.Patch(ctx, name, types.MergePatchType, []byte(renewal), metav1.PatchOptions{})
		}
	})
}
