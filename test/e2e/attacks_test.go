package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/eventually"
)

// caller makes requests with one identity.
type caller struct {
	http *http.Client
	base string
}

func callerOf(t *testing.T, kubeconfig string) (*caller, *rest.Config) {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(rc)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{h, rc.Host}, rc
}

// do sends body (nil: none) to a path, or URL, and returns the status code and the body of the
// response. A PATCH is a merge patch.
func (c *caller) do(t *testing.T, method, path string, body any, header ...string) (int, string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(path, "https:") {
		path = c.base + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

type object = map[string]any

const batchJobs = "/apis/berth.hpc/v1alpha1/namespaces/user-%s/batchjobs"

// attacks are bob's attempts to access a running job of alice's with his certificate, by way
// of the API server and directly.
func (s *shared) attacks(t *testing.T) {
	id := s.run(t, s.alice, "sbatch", "--parsable", "-o", "/dev/null", "-N2", "--wrap", "srun sleep 600")
	defer s.run(t, s.alice, "scancel", id)
	bob, rc := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	jobs := fmt.Sprintf(batchJobs, s.alice.name)
	job := jobs + "/" + s.objectOf(t, admin, jobs, id)
	t.Run("API server", func(t *testing.T) { s.forbidden(t, bob, jobs, job) })
	t.Run("queue API", func(t *testing.T) {
		for _, verb := range []string{"cancel", "requeue", "signal"} {
			code, text := bob.do(t, "POST", "/apis/queue.berth.hpc/v1alpha1/operations",
				object{"verb": verb, "jobs": []string{id}, "signal": 10}, "X-Remote-User", "root", "X-Remote-Group", "system:masters")
			if code != 200 || !strings.Contains(text, "Access/permission denied") {
				t.Errorf("%s: %d %s", verb, code, text)
			}
		}
	})
	t.Run("API role", func(t *testing.T) { s.direct(t, rc, id) })
	t.Run("agent", func(t *testing.T) { s.agents(t, admin, job, id) })
	t.Run("processes", func(t *testing.T) { s.processes(t, id) })
	if state := s.run(t, s.bob, "squeue", "-h", "-j", id, "-o", "%T"); state != "RUNNING" && state != "CONFIGURING" {
		t.Errorf("alice's job is %s", state)
	}
}

// run is the output of a user's command, which must succeed.
func (s *shared) run(t *testing.T, a account, args ...string) string {
	t.Helper()
	line := a.command(s.bin, args...)
	var errs bytes.Buffer
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v %s", args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// objectOf is the name of the job's BatchJob.
func (s *shared) objectOf(t *testing.T, admin *caller, jobs, id string) string {
	t.Helper()
	_, text := admin.do(t, "GET", jobs+"?labelSelector=berth.hpc/job-id="+id, nil)
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return list.Items[0].Metadata.Name
}

func (s *shared) forbidden(t *testing.T, bob *caller, jobs, job string) {
	own, hers := "/api/v1/namespaces/user-"+s.bob.name, "/api/v1/namespaces/user-"+s.alice.name
	ownJobs := fmt.Sprintf(batchJobs, s.bob.name)
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "x"},
		"spec": object{"containers": []object{{"name": "job", "image": "berth.hpc/host"}}}}
	submission := object{"apiVersion": "berth.hpc/v1alpha1", "kind": "BatchJob", "metadata": object{"name": "j-x"},
		"spec": object{"job": object{"batch": object{"workDir": "/tmp"}}}}
	for _, try := range []struct {
		method, path string
		body         any
	}{
		{"GET", job, nil},
		{"GET", jobs, nil},
		{"GET", "/apis/berth.hpc/v1alpha1/batchjobs", nil},
		{"PATCH", job, object{"spec": object{"cancel": object{"by": s.alice.name}}}},
		{"PATCH", job + "/status", object{"status": object{"state": "FAILED"}}},
		{"PATCH", job, object{"metadata": object{"finalizers": nil}}},
		{"DELETE", job, object{"propagationPolicy": "Orphan"}},
		{"POST", jobs, submission},
		{"POST", own + "/pods", pod},
		{"GET", own + "/pods", nil},
		{"GET", own + "/secrets", nil},
		{"POST", own + "/serviceaccounts/berth-job/token", object{"spec": object{}}},
		{"POST", hers + "/serviceaccounts/berth-job/token", object{"spec": object{}}},
		{"GET", hers + "/pods", nil},
		{"POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/user-" + s.bob.name + "/jobsets", object{"metadata": object{"name": "x"}}},
		{"POST", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/user-" + s.bob.name + "/podgroups", object{"metadata": object{"name": "x"}}},
		{"PATCH", ownJobs + "/x/status", object{"status": object{}}},
		{"GET", "/api/v1/nodes", nil},
		{"GET", "/api/v1/nodes/n1/proxy/pods", nil},
		{"GET", "/apis/berth.hpc/v1alpha1/users", nil},
		{"GET", "/api/v1/namespaces/berth-system/secrets", nil},
		{"GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", nil},
	} {
		if code, text := bob.do(t, try.method, try.path, try.body); code != 403 {
			t.Errorf("%s %s: %d %.300s", try.method, try.path, code, text)
		}
	}
	if code, text := bob.do(t, "GET", "/api/v1/nodes", nil, "Impersonate-User", "root"); code != 403 {
		t.Errorf("impersonation: %d %.300s", code, text)
	}
}

// direct sends requests to the API role's own port, without the API server.
func (s *shared) direct(t *testing.T, rc *rest.Config, id string) {
	var ports struct{ Queue int }
	data, err := os.ReadFile(filepath.Join(s.state, "ports.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &ports); err != nil || ports.Queue == 0 {
		t.Fatalf("%v: %s", err, data)
	}
	own, err := tls.X509KeyPair(rc.CertData, rc.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	review := object{"request": object{"uid": "x", "operation": "CREATE", "namespace": "user-" + s.alice.name,
		"userInfo": object{"username": s.alice.name}, "object": object{"spec": object{"job": object{}}}}}
	before := s.run(t, s.bob, "sbatch", "--parsable", "--hold", "--wrap", "true")
	for name, certificates := range map[string][]tls.Certificate{"without a certificate": nil, "with his own": {own}} {
		c := &caller{base: fmt.Sprintf("https://127.0.0.1:%d", ports.Queue), http: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, //nolint:gosec // an attacker's
		}}}
		for path, body := range map[string]any{
			"/mutate/batchjobs": review, "/validate/batchjobs": review, "/mutate/pods": review,
			"/apis/queue.berth.hpc/v1alpha1/operations": object{"verb": "cancel", "jobs": []string{id}},
			"/agent/v1/hello":    object{"jobID": 70001, "attempt": 1},
			"/agent/v1/commands": object{}, "/agent/v1/report": object{"kind": "ended"},
		} {
			code, text := c.do(t, "POST", path, body, "X-Remote-User", "root", "X-Remote-Group", "system:masters")
			if code != 401 {
				t.Errorf("%s, %s: %d %.300s", path, name, code, text)
			}
		}
	}
	// None of these requests has used up a job id.
	after := s.run(t, s.bob, "sbatch", "--parsable", "--hold", "--wrap", "true")
	var a, b int
	if _, err := fmt.Sscan(before+" "+after, &a, &b); err != nil || b != a+1 {
		t.Errorf("ids %s and then %s: %v", before, after, err)
	}
}

// agents: a job's agents accept only each other.
func (s *shared) agents(t *testing.T, admin *caller, job, id string) {
	var b struct {
		Status struct {
			Allocation struct{ Nodes []struct{ Address string } }
		}
	}
	eventually.Holds(t, "the job has the addresses of its agents", func() bool {
		_, text := admin.do(t, "GET", job, nil)
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		n := b.Status.Allocation.Nodes
		return len(n) > 0 && n[0].Address != ""
	})
	for _, n := range b.Status.Allocation.Nodes {
		conn, err := tls.Dial("tcp", n.Address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // an attacker's
		if err == nil {
			// With TLS 1.3 a client notices a refusal only when it reads.
			_, err = conn.Write([]byte("{}\n"))
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s answers a client without the job's certificate", n.Address)
		}
	}
	s.sockets(t, id)
}

// sockets: only the job's user can enter the directories with the sockets of its agents.
func (s *shared) sockets(t *testing.T, id string) {
	t.Helper()
	found := 0
	for _, pid := range s.agentsOf(t, id) {
		root := "/proc/" + pid + "/root"
		paths, err := filepath.Glob(root + "/tmp/berth-" + s.alice.uid + "-*/step.sock")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found++
			dir := filepath.Dir(path)
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, mode %v", dir, err, info.Mode())
			}
			line := s.bob.command(s.bin, "ls", strings.TrimPrefix(dir, root))
			if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil {
				t.Errorf("bob lists %s: %s", dir, out)
			}
		}
	}
	if found == 0 {
		t.Error("the job's agents have no sockets")
	}
}

// processes: the agents, whose memory contains the job's key, are not accessible to other users
// nor to the job itself.
func (s *shared) processes(t *testing.T, id string) {
	pids := s.agentsOf(t, id)
	if len(pids) == 0 {
		t.Fatal("the job has no agents")
	}
	for _, a := range []account{s.bob, s.alice} {
		for _, pid := range pids {
			for _, file := range []string{"environ", "mem", "maps", "fd/0", "root/tmp", "cwd/", "syscall"} {
				line := a.command(s.bin, "head", "-c1", "/proc/"+pid+"/"+file)
				if strings.HasSuffix(file, "tmp") || strings.HasSuffix(file, "/") {
					line = a.command(s.bin, "ls", "/proc/"+pid+"/"+file)
				}
				out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
				if err == nil || !strings.Contains(string(out), "ermission denied") && !strings.Contains(string(out), "not permitted") {
					t.Errorf("%s reads %s of an agent: %q", a.name, file, out)
				}
			}
		}
		if a == s.alice {
			continue
		}
		line := a.command(s.bin, append([]string{"kill", "-CONT"}, pids...)...)
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil {
			t.Errorf("%s signals the agents: %s", a.name, out)
		}
	}
}

// agentsOf returns the processes of the job's agents, as root sees them.
func (s *shared) agentsOf(t *testing.T, id string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		dir := filepath.Dir(file)
		comm, _ := os.ReadFile(filepath.Join(dir, "comm")) // it may be gone
		environ, _ := os.ReadFile(file)                    // as above
		if strings.TrimSpace(string(comm)) == "agent" && bytes.Contains(environ, []byte("\x00BERTH_JOB_ID="+id+"\x00")) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}
