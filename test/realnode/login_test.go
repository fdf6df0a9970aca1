//go:build e2ereal

package realnode

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// signer is the user's key.
var signer ssh.Signer

// loginKey creates the user's key and returns its line for authorized_keys.
func loginKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// testLogin logs in to the chart's login pod and submits a job there.
func testLogin(t *testing.T, ctx context.Context, s *Site) {
	client := dialLogin(t, ctx, s, user.Name)
	defer client.Close()
	if out := remote(t, client, "id -u; whoami; pwd; command -v sbatch"); out != "15001\n"+user.Name+"\n"+user.Home()+"\n/berth/bin/sbatch\n" {
		t.Errorf("the session is %q", out)
	}
	id := strings.TrimSpace(remote(t, client, "sbatch --parsable -N2 -o by-ssh.out --wrap 'srun id -u; whoami; id -gn; getent passwd root | cut -d: -f1'"))
	waitForState(t, ctx, s, id, "COMPLETED")
	// The image does not contain the user, but the user's name is known in the job.
	if out := remote(t, client, "cat by-ssh.out"); out != "15001\n15001\n"+user.Name+"\n"+user.Name+"\nroot\n" {
		t.Errorf("the job wrote %q", out)
	}
	if out := remote(t, client, "srun -N1 hostname; sacct -n -X -P -j "+id+" -o User,State"); !strings.HasSuffix(out, "\nmpiuser|COMPLETED\n") || out[0] != 'n' {
		t.Errorf("srun and sacct on the login node print %q", out)
	}
	// A key opens only the account of its user.
	if _, err := dial(ctx, s, other.Name); err == nil {
		t.Error("a user without a key could log in")
	}
	if b, err := os.ReadFile(filepath.Join(user.Home(), "by-ssh.out")); err != nil || len(b) == 0 {
		t.Errorf("the login node and the jobs do not share homes: %v", err)
	}
}

// testLoginPods has each user's sessions run in a pod of that user: the login
// node itself has no rights of root then, and the pods' namespace enforces the
// restricted standard.
func testLoginPods(t *testing.T, ctx context.Context, s *Site) {
	addHomeClaim(t, ctx, s, loginPods)
	if _, err := s.Helm(ctx, "upgrade", Release, s.chart, "--reuse-values", "--wait", "--timeout=3m", "--set=login.pods.enabled=true,login.pods.resources.requests.cpu=null",
		"--set=login.pods.spec.volumes[0].name=home,login.pods.spec.volumes[0].persistentVolumeClaim.claimName="+homeClaim); err != nil {
		t.Fatal(err)
	}
	client := dialLogin(t, ctx, s, user.Name)
	defer client.Close()
	if out := remote(t, client, "id -u; whoami; id -gn; pwd; grep NoNewPrivs /proc/self/status"); out != "15001\n"+user.Name+"\n"+user.Name+"\n"+user.Home()+"\nNoNewPrivs:\t1\n" {
		t.Errorf("the session is %q", out)
	}
	pods, err := s.Client.CoreV1().Pods(loginPods).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d login pods, %v", len(pods.Items), err)
	}
	if out := strings.TrimSpace(remote(t, client, "hostname")); out != pods.Items[0].Name {
		t.Errorf("the session is on %q, the user's pod is %s", out, pods.Items[0].Name)
	}
	id := strings.TrimSpace(remote(t, client, "sbatch --parsable -N2 -o by-pod.out --wrap 'srun id -u'"))
	waitForState(t, ctx, s, id, "COMPLETED")
	if out := remote(t, client, "cat by-pod.out"); out != "15001\n15001\n" {
		t.Errorf("the job wrote %q", out)
	}
}

// loginPods is the namespace of users' login pods.
const loginPods = "berth-login-pods"

func dialLogin(t *testing.T, ctx context.Context, s *Site, name string) *ssh.Client {
	t.Helper()
	var client *ssh.Client
	var last error
	if err := waitFor(ctx, time.Minute, func() bool {
		client, last = dial(ctx, s, name)
		return last == nil
	}); err != nil {
		t.Fatal(err, last)
	}
	return client
}

// dial connects to the login node's Service and requires the host key of the Secret
// that the chart created.
func dial(ctx context.Context, s *Site, name string) (*ssh.Client, error) {
	service, err := s.Client.CoreV1().Services("berth-login").Get(ctx, "berth-login", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	secret, err := s.Client.CoreV1().Secrets("berth-login").Get(ctx, "berth-host-keys", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	host, err := ssh.ParsePrivateKey(secret.Data["ssh_host_ed25519_key"])
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", net.JoinHostPort(service.Spec.ClusterIP, "22"), &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, Timeout: 30 * time.Second,
		HostKeyCallback: ssh.FixedHostKey(host.PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}})
}

func remote(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var output strings.Builder
	session.Stderr = &output
	out, err := session.Output(command)
	if err != nil {
		t.Fatalf("%s: %v: %s%s", command, err, out, output.String())
	}
	return string(out)
}
