package command_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/command"
	"github.com/berth-hpc/berth/internal/localcluster/parts"
	"github.com/berth-hpc/berth/internal/stdio"
)

// asProgram turns this test binary into berth-local.
const asProgram = "BERTH_TEST_LOCAL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(command.Main(os.Args[1:], stdio.System(), parts.All()))
	}
	os.Exit(m.Run())
}

// berthLocal runs berth-local and returns its exit code and its output.
func berthLocal(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout) // not that of the test, for its cleanup
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("berth-local %v has not ended:\n%s", args, out)
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// directory returns a state directory; its cluster is stopped at the end of the test.
func directory(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "state")
	t.Cleanup(func() {
		if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 {
			t.Errorf("down: %d %s", code, out)
		}
	})
	return dir
}

func up(t *testing.T, dir string, args ...string) string {
	t.Helper()
	code, out := berthLocal(t, append([]string{"run", "--state-dir", dir, "--nodes=1"}, args...)...)
	if code != 0 {
		log, _ := os.ReadFile(filepath.Join(dir, localcluster.FileLog))
		t.Fatalf("up: %d %s\n%s", code, out, log)
	}
	return out
}

// request sends a request to the API server as the administrator.
func request(t *testing.T, dir, method, path, body string) (int, string) {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, localcluster.FileAdmin))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, rc.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

const (
	things = "/api/v1/namespaces/default/configmaps"
	thing  = things + "/kept"
)

func TestUpStatusDown(t *testing.T) {
	dir := directory(t)
	out := up(t, dir)
	if !strings.Contains(out, "ready: 1 nodes") || !strings.Contains(out, filepath.Join(dir, "kubeconfig")) {
		t.Errorf("the output of up is\n%s", out)
	}
	if code, _ := request(t, dir, "POST", things, `{"metadata":{"name":"kept"}}`); code != http.StatusCreated {
		t.Fatalf("create: %d", code)
	}
	const otherNode = "/api/v1/nodes/other"
	if code, _ := request(t, dir, "POST", "/api/v1/nodes", `{"metadata":{"name":"other"}}`); code != http.StatusCreated {
		t.Fatalf("create a node: %d", code)
	}
	for _, path := range []string{
		"/apis/berth.hpc/v1alpha1/partitions/main", "/apis/queue.berth.hpc/v1alpha1/jobs",
		"/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "/api/v1/nodes/n1",
	} {
		if code, body := request(t, dir, "GET", path, ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, out := berthLocal(t, "status", "--state-dir", dir); code != 0 || !strings.Contains(out, "running: process") {
		t.Errorf("status: %d %s", code, out)
	}

	code, out := berthLocal(t, "run", "--state-dir", dir)
	if code != 1 || !strings.Contains(out, "berth: error: a local cluster is running already (process ") {
		t.Errorf("second up: %d %s", code, out)
	}

	if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 || !strings.Contains(out, "ended") {
		t.Fatalf("down: %d %s", code, out)
	}
	if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 || !strings.Contains(out, "no local cluster runs") {
		t.Errorf("second down: %d %s", code, out)
	}
	if code, out := berthLocal(t, "status", "--state-dir", dir); code != 1 {
		t.Errorf("status when down: %d %s", code, out)
	}

	up(t, dir)
	for _, path := range []string{thing, otherNode} {
		if code, _ := request(t, dir, "GET", path, ""); code != http.StatusOK {
			t.Errorf("%s after down and up: %d", path, code)
		}
	}

	kill(t, dir)
	up(t, dir)
	if code, _ := request(t, dir, "GET", thing, ""); code != http.StatusOK {
		t.Errorf("after SIGKILL and up: %d", code)
	}

	if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 {
		t.Fatalf("down: %d %s", code, out)
	}
	up(t, dir, "--fresh")
	if code, _ := request(t, dir, "GET", thing, ""); code != http.StatusNotFound {
		t.Errorf("after up --fresh: %d", code)
	}
}

// A killed cluster leaves cgroups, links and shared memory on the machine; down removes them.
func TestDownAfterCrash(t *testing.T) {
	dir := directory(t)
	up(t, dir)
	kill(t, dir)
	if left := leftovers(t, dir); len(left) == 0 {
		t.Error("a killed cluster left nothing: the test checks the wrong places")
	}
	code, out := berthLocal(t, "down", "--state-dir", dir)
	if code != 0 || !strings.Contains(out, "was killed") {
		t.Errorf("down: %d %s", code, out)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left after down: %v", left)
	}
	if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 || !strings.Contains(out, "no local cluster runs") {
		t.Errorf("down again: %d %s", code, out)
	}
}

// leftovers returns the cluster's shared memory, cgroups and links.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	sum := sha256.Sum256([]byte(filepath.Join(dir, "nodes")))
	name := "berth-" + hex.EncodeToString(sum[:4])
	var left []string
	for _, pattern := range []string{"/dev/shm/" + name + "-*", "/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	sum = sha256.Sum256([]byte(dir))
	for _, l := range links {
		if strings.HasPrefix(l.Name, "bt"+hex.EncodeToString(sum[:3])) {
			left = append(left, l.Name)
		}
	}
	return left
}

// kill kills the cluster's process, as a crash does.
func kill(t *testing.T, dir string) {
	t.Helper()
	p, err := localcluster.ReadProcess(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the lock of the dead process is free", func() bool {
		locked, err := localcluster.Locked(dir)
		return err == nil && !locked
	})
	if p.Alive() {
		eventually.Holds(t, "the process is gone", func() bool { return !p.Alive() || zombie(p.PID) })
	}
}

func zombie(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	return err == nil && bytes.Contains(data, []byte(") Z "))
}

func itoa(n int) string {
	data, _ := json.Marshal(n)
	return string(data)
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dir := directory(t)
	code, out := berthLocal(t, "run", "--state-dir", dir, "--nodes=0", "--api-port="+port)
	if code != 1 || !strings.Contains(out, "port "+port+" is in use by another process") {
		t.Errorf("%d %s", code, out)
	}
	if locked, err := localcluster.Locked(dir); err != nil || locked {
		t.Errorf("locked %t, %v", locked, err)
	}
}

func TestBadInput(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=x\nNodeName=n[1-\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nodes=-1"}, "--nodes: -1 is not in 0..1000"},
		{[]string{"--memory=lots"}, `--memory: "lots" is not a size`},
		{[]string{"--scheduler=some"}, `"some" is neither internal nor external nor none`},
		{[]string{"--slurm-conf=" + conf}, conf + ":2: Invalid hostlist: n[1-"},
		{[]string{"--slurm-conf=/does/not/exist"}, "no such file or directory"},
		{[]string{"--state-dir=" + other}, "has other files (thesis.tex)"},
		{[]string{"--fresh", "--state-dir=" + other}, "has other files (thesis.tex)"},
		{[]string{"--wrong"}, "unknown flag: --wrong"},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		code, out := berthLocal(t, append([]string{"run", "--state-dir", dir}, c.args...)...)
		if code != 1 || !strings.Contains(out, c.want) || !strings.Contains(out, "berth: error: ") {
			t.Errorf("%v: %d %s", c.args, code, out)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "thesis.tex")); err != nil {
		t.Error(err)
	}
}

// The servers on loopback refuse clients without credentials.
func TestClientsWithoutCredentials(t *testing.T) {
	dir := directory(t)
	up(t, dir)
	data, err := os.ReadFile(filepath.Join(dir, "ports.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ports map[string]int
	if err := json.Unmarshal(data, &ports); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the client does not check the server
	defer client.CloseIdleConnections()
	for name, path := range map[string]string{
		"api": "/api/v1/secrets", "queue": "/apis/queue.berth.hpc/v1alpha1/jobs",
	} {
		r, err := client.Get("https://127.0.0.1:" + itoa(ports[name]) + path)
		if errors.Is(err, syscall.ECONNREFUSED) || ports[name] == 0 {
			t.Errorf("%s: nothing listens on port %d", name, ports[name])
		}
		if err != nil {
			continue // refused in the handshake
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusUnauthorized && r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
	trySocket(t, dir)
	for _, name := range []string{
		"kubeconfig", "scheduler.kubeconfig", "controllers.kubeconfig", "pki/ca.key", "control", "control/tokens.csv",
		"accounting.db",
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

// trySocket sends requests through the cluster's socket, to which every user of the machine may
// connect.
func trySocket(t *testing.T, dir string) {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "api.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	admin := regexp.MustCompile(`token: (\w+)`).FindSubmatch(read(t, filepath.Join(dir, "kubeconfig")))
	if admin == nil {
		t.Fatal("the kubeconfig has no token")
	}
	for name, tt := range map[string]struct {
		header http.Header
		want   int
	}{
		"nothing":        {http.Header{}, http.StatusUnauthorized},
		"a wrong token":  {http.Header{"Authorization": {"Bearer " + strings.Repeat("A", len(admin[1]))}}, http.StatusUnauthorized},
		"an empty token": {http.Header{"Authorization": {"Bearer "}}, http.StatusUnauthorized},
		"the headers of the front proxy": {http.Header{"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}},
			http.StatusUnauthorized},
		"impersonation":       {http.Header{"Impersonate-User": {"system:admin"}}, http.StatusUnauthorized},
		"the token of a user": {http.Header{"Authorization": {"Bearer " + string(admin[1])}}, http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/secrets", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = tt.header
		r, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d", name, r.StatusCode, tt.want)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
