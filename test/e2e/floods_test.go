package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TestFloods: bob floods the service with each kind of request, and alice works as
// usual. The test counts requests; make bench-floods measures times.
func TestFloods(t *testing.T) {
	s := newShared(t)
	id := s.run(t, s.bob, "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600")
	t.Run("streams", func(t *testing.T) { s.floodOfStreams(t, id) })
	t.Run("ranges", func(t *testing.T) { s.floodOfRanges(t, id) })
	t.Run("bytes", s.floodOfBytes)
	t.Run("submissions", s.floodOfSubmissions)
	t.Run("bearers", s.floodOfBearers)
	t.Run("profiles", s.profiles)
	t.Run("silent connections", s.floodOfSilence)
	if state := s.run(t, s.alice, "squeue", "-h", "-j", id, "-o", "%T"); state != "RUNNING" {
		t.Errorf("bob's job is %s", state)
	}
}

// works fails the test unless alice's commands work.
func (s *shared) works(t *testing.T) {
	t.Helper()
	s.run(t, s.alice, "squeue")
	s.run(t, s.alice, "srun", "-n1", "true")
}

// open sends a request whose response may not end, and returns its status code. The response
// is closed at the end of the test.
func (c *caller) open(t *testing.T, path string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s: refused without Retry-After", path)
	}
	return resp.StatusCode
}

const queueRoot = "/apis/queue.berth.hpc/v1alpha1"

// floodOfStreams: watches, waiting commands and connections of one user are
// bounded.
func (s *shared) floodOfStreams(t *testing.T, id string) {
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	for _, c := range []struct {
		path    string
		tries   int
		most    int
		headers []string
	}{
		{queueRoot + "/jobs?watch=true", 34, 32, nil},
		{queueRoot + "/nodes?watch=true", 2, 0, nil}, // those of jobs count too
		{queueRoot + "/jobs/" + id + "/attach", 258, 256, nil},
	} {
		accepted := 0
		for range c.tries {
			if bob.open(t, c.path, c.headers...) == http.StatusOK {
				accepted++
			}
		}
		if accepted != c.most {
			t.Errorf("%s: %d of %d were accepted, want %d", c.path, accepted, c.tries, c.most)
		}
	}
	s.works(t)
}

// submission returns a BatchJob with a script of that number of bytes, which do not
// compress.
func submission(t *testing.T, noise int) object {
	t.Helper()
	random := make([]byte, noise)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	script := z.EncodeAll(append([]byte("#!/bin/sh\n# "), random...), nil)
	return object{"apiVersion": "berth.hpc/v1alpha1", "kind": "BatchJob",
		"metadata": object{"name": "j-" + strings.ToLower(rand.Text()[:20])},
		"spec": object{"script": base64.StdEncoding.EncodeToString(script),
			"job": object{"name": "flood", "hold": "user", "batch": object{"workDir": "/tmp", "output": "/dev/null"}}}}
}

// floodOfBytes: bob can store bytes up to a limit that the refusal names, also after a restart
// of the scheduler, and alice can still submit jobs.
func (s *shared) floodOfBytes(t *testing.T) {
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	if code, text := admin.do(t, "PATCH", "/apis/berth.hpc/v1alpha1/users/"+s.bob.name, object{"spec": object{"maxBytes": 2 << 20}}); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	jobs := fmt.Sprintf(batchJobs, s.bob.name)
	refused := ""
	stored := 0
	for range 12 {
		code, text := bob.do(t, "POST", jobs, submission(t, 300<<10))
		if code == http.StatusCreated {
			stored++
		} else if refused == "" {
			refused = text
		}
	}
	if stored != 6 || !strings.Contains(refused, "beyond the limit of 2048 KiB") {
		t.Errorf("%d jobs of 300 KiB are stored; %s", stored, refused)
	}
	s.restart(t)
	if code, text := bob.do(t, "POST", jobs, submission(t, 300<<10)); code == http.StatusCreated {
		t.Errorf("after a restart a job beyond the limit is stored: %s", text)
	}
	s.works(t)
	s.run(t, s.bob, "scancel", "-n", "flood")
}

// restart kills the cluster's process and starts the cluster again.
func (s *shared) restart(t *testing.T) {
	t.Helper()
	d := &database{s.cluster, t, "", ""}
	d.kill()
	s.up(t, "--user", s.alice.name, "--user", s.bob.name)
}

// floodOfSubmissions: submissions beyond the rate are refused before they are checked.
func (s *shared) floodOfSubmissions(t *testing.T) {
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	set := func(n any) {
		t.Helper()
		if code, text := admin.do(t, "PATCH", "/apis/berth.hpc/v1alpha1/clusters/berth", object{"spec": object{"submitsPerSecond": n}}); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
	}
	set(1)
	defer set(nil)
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	jobs := fmt.Sprintf(batchJobs, s.bob.name)
	broken := submission(t, 100)
	broken["spec"].(object)["job"].(object)["array"] = object{"spec": "0-"} //nolint:forcetypeassert // made above
	again := 0
	for range 100 {
		code, text := bob.do(t, "POST", jobs, broken)
		if code == http.StatusTooManyRequests {
			if again++; !strings.Contains(text, "Resource temporarily unavailable") {
				t.Errorf("%s", text)
			}
		}
	}
	if again < 50 {
		t.Errorf("of 100 submissions at once %d were refused for their rate", again)
	}
	s.works(t)
}

// role is the address of the API role's own port.
func (s *shared) role(t *testing.T) string {
	t.Helper()
	var ports struct{ Queue int }
	data, err := os.ReadFile(filepath.Join(s.state, "ports.json"))
	if err == nil {
		err = json.Unmarshal(data, &ports)
	}
	if err != nil || ports.Queue == 0 {
		t.Fatalf("%v: %s", err, data)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports.Queue)
}

// floodOfBearers: a thousand unknown bearer tokens cause at most a few reviews by the
// API server.
func (s *shared) floodOfBearers(t *testing.T) {
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	before := s.reviews(t, admin)
	agents := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // an attacker's
	}}
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil,
		`{"iss":"https://kubernetes.default.svc","exp":9999999999,"sub":"system:serviceaccount:user-%s:berth-job","kubernetes.io":{"namespace":"user-%s","pod":{"name":"x","uid":"y"}}}`,
		s.alice.name, s.alice.name))
	var wg sync.WaitGroup
	next := make(chan string)
	for range 20 {
		wg.Go(func() {
			for bearer := range next {
				r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+s.role(t)+"/agent/v1/hello", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+bearer)
				resp, err := agents.Do(r)
				if err != nil {
					t.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests {
					t.Errorf("answered %d", resp.StatusCode)
				}
			}
		})
	}
	for i := range 1000 {
		next <- []string{rand.Text(), "e30." + claims + "." + rand.Text()}[i%2]
	}
	close(next)
	wg.Wait()
	if n := s.reviews(t, admin) - before; n > 10 {
		t.Errorf("1,000 unknown bearers cost %d reviews", n)
	}
	s.works(t)
}

// reviews is how many token reviews the API server has answered.
func (s *shared) reviews(t *testing.T, admin *caller) int {
	t.Helper()
	_, text := admin.do(t, "GET", "/metrics", nil)
	sum := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="tokenreviews"`) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			sum += int(n)
		}
	}
	return sum
}

// profiles: the profiles of the local cluster's process, which show what it works on, are
// for administrators.
func (s *shared) profiles(t *testing.T) {
	for file, want := range map[string]int{
		filepath.Join(s.state, "kubeconfig"):                              http.StatusOK,
		filepath.Join(s.alice.home, ".local/state/berth/user.kubeconfig"): http.StatusForbidden,
	} {
		c, _ := callerOf(t, file)
		if code, _ := c.do(t, http.MethodGet, "/debug/pprof/heap", nil); code != want {
			t.Errorf("/debug/pprof/heap: %d, want %d", code, want)
		}
	}
}

// floodOfSilence: of a thousand connections that send nothing, the API role keeps some, and
// it serves the requests of other users.
func (s *shared) floodOfSilence(t *testing.T) {
	address := s.role(t)
	deadline := time.Now().Add(8 * time.Second) // before the timeout of a handshake
	open := make(map[net.Conn]bool)
	for range 1000 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open[c] = true
	}
	s.works(t)
	for len(open) > 300 {
		for c := range open {
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) {
				delete(open, c)
			}
		}
		if len(open) > 300 && time.Now().After(deadline) {
			t.Fatalf("%d of 1,000 silent connections are open", len(open))
		}
	}
}
