package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// TestPropertiesAreOptions: each property is an option of sbatch.
func TestPropertiesAreOptions(t *testing.T) {
	all, _ := option.Of("sbatch")
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(o *option.Option) bool { return o.Name == name })
	}
	for _, p := range propertiesOf(true) {
		if p.option != "" && !has(p.option) {
			t.Errorf("%s: sbatch has no --%s", p.name, p.option)
		}
	}
	if has("no-requeue") != has("requeue") {
		t.Error("requeue and no-requeue are not both options")
	}
}

func TestArguments(t *testing.T) {
	begin := time.Unix(1900000000, 0).Format("2006-01-02T15:04:05")
	for _, tt := range []struct {
		modern     bool
		body, want string // the options, separated by blanks; or the error
	}{
		{false, `{"name":"x","nodes":[2,4],"tasks":8,"hold":true,"requeue":false}`,
			"--hold --job-name=x --nodes=2-4 --no-requeue --ntasks=8"},
		{false, `{"nodes":3,"hold":false,"requeue":true,"exclusive":"user"}`, "--exclusive=user --nodes=3 --requeue"},
		{false, `{"nodes":"2-3","exclusive":true,"minimum_nodes":true}`, "--exclusive --use-min-nodes --nodes=2-3"},
		{false, `{"time_limit":90,"begin_time":1900000000}`, "--begin=" + begin + " --time=90"},
		{false, `{"time_limit":"1-0","begin_time":"now+1hour"}`, "--begin=now+1hour --time=1-0"},
		{false, `{"memory_per_node":"2000","comment":null,"priority":"5"}`, "--mem=2000 --priority=5"},
		{false, `{"required_nodes":["n1","n2"],"kill_on_invalid_dependency":true}`, "--kill-on-invalid-dep=yes --nodelist=n1,n2"},
		{true, `{"minimum_nodes":2,"maximum_nodes":{"set":true,"number":4}}`, "--nodes=2-4"},
		{true, `{"maximum_nodes":4,"time_limit":{"infinite":true}}`, "--time=UNLIMITED --nodes=1-4"},
		{true, `{"exclusive":["user"],"kill_on_node_fail":false,"kill_warning_signal":"USR1","kill_warning_delay":{"set":true,"number":60}}`,
			"--exclusive=user --no-kill --signal=USR1@60"},
		{true, `{"required_switches":{"set":true,"number":2},"wait_for_switch":90,"open_mode":["APPEND"]}`,
			"--open-mode=APPEND --switches=2@00:01:30"},
		{true, `{"tres_per_node":"gres/gpu:2"}`, "--gres=gpu:2"},
		{false, `{"tasks":"x"}`, "Unable to process key \"tasks\": a number expected, not \"x\""},
		{false, `{"tasks":1.5}`, "Unable to process key \"tasks\": a number expected, not 1.5"},
		{false, `{"name":["x"]}`, "Unable to process key \"name\": a string expected, not [\"x\"]"},
		{false, `{"hold":"perhaps"}`, "Unable to process key \"hold\": true or false expected, not \"perhaps\""},
		{false, `{"prefer":"x","nope":1}`, "Unknown key \"nope\""},
	} {
		var d description
		if err := json.Unmarshal([]byte(tt.body), &d); err != nil {
			t.Fatal(err)
		}
		args, err := d.arguments(tt.modern)
		got := strings.Join(args, " ")
		if f, ok := err.(*failure); ok { //nolint:errorlint // it is not wrapped
			text, _ := f.before[0][0].Value.(string)
			got = text
		}
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.body, got, tt.want)
		}
	}
}

// apiServer answers requests for the cluster's description, and counts them.
type apiServer struct {
	mu       sync.Mutex
	requests []string // tokens
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, token)
	if token == "bad" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"user": token, "namespace": "user-" + token})
}

// connect returns a cluster whose API server is s, until the test ends.
func connect(t *testing.T, s *apiServer) *Cluster {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p := &stdio.Process{
		LookupEnv: func(string) (string, bool) { return "", false },
		Hostname:  func() (string, error) { return "web", nil },
		ReadFile: func(string) ([]byte, error) {
			return []byte("current-context: x\ncontexts: [{name: x, context: {cluster: x}}]\n" +
				"clusters: [{name: x, cluster: {server: '" + server.URL + "'}}]\n"), nil
		},
	}
	c, err := Connect(p, "kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSlowBodies: clients that send bodies slowly keep no other request from being answered,
// and a user can have only a few of them.
func TestSlowBodies(t *testing.T) {
	a := New(Options{Cluster: connect(t, &apiServer{}), JWT: true, Threads: 1, Now: time.Now})
	server := httptest.NewServer(a.Handler(false))
	defer server.Close()
	request := func(user string, body io.Reader) int {
		method := http.MethodPost
		if body == nil {
			method = http.MethodGet
		}
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/slurm/v0.0.38/job/1", body)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set(headerToken, user)
		resp, err := server.Client().Do(r)
		if err != nil {
			return 0 // the body was closed with an error
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	var clients sync.WaitGroup
	var bodies []*io.PipeWriter
	for range maxBodies {
		body, w := io.Pipe()
		bodies = append(bodies, w)
		clients.Go(func() { request("anna", body) })
	}
	eventually.Holds(t, "all bodies are being received", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.bodies["anna"] == maxBodies
	})
	if got := request("anna", strings.NewReader("{}")); got != http.StatusTooManyRequests {
		t.Errorf("one body more: %d", got)
	}
	for user, body := range map[string]io.Reader{"anna": nil, "ben": strings.NewReader("{}")} {
		if got := request(user, body); got == 0 || got == http.StatusTooManyRequests {
			t.Errorf("%s: %d", user, got)
		}
	}
	for _, w := range bodies {
		w.CloseWithError(io.ErrUnexpectedEOF)
	}
	clients.Wait()
	eventually.Holds(t, "no body is being received", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.bodies) == 0
	})
}

// TestSessions: a token is resolved once a minute, a refused one never stays, and the
// number of sessions is bounded.
func TestSessions(t *testing.T) {
	s := &apiServer{}
	c := connect(t, s)
	now := time.Unix(1000, 0)
	all := newSessions(c.client, func() time.Time { return now })
	find := func(token string) *session {
		t.Helper()
		found, err := all.find(t.Context(), token)
		if (err != nil) != (token == "bad") {
			t.Fatalf("%s: %v", token, err)
		}
		return found
	}
	if a := find("anna"); a.user != "anna" || a.client.Namespace() != "user-anna" || find("anna") != a {
		t.Errorf("%+v", a)
	}
	if find("ben").user != "ben" || len(s.requests) != 2 {
		t.Errorf("requests: %v", s.requests)
	}
	find("bad")
	find("bad")
	now = now.Add(2 * sessionAge)
	find("anna")
	if want := []string{"anna", "ben", "bad", "bad", "anna"}; !slices.Equal(s.requests, want) {
		t.Errorf("requests: %v, want %v", s.requests, want)
	}
	for i := range maxSessions + 10 {
		all.keep([32]byte{byte(i), byte(i >> 8), 1}, &session{client: new(jobs.Client)})
	}
	if len(all.all) != maxSessions || len(all.order) != maxSessions {
		t.Errorf("%d sessions, %d in order", len(all.all), len(all.order))
	}
}

// TestDescription: every endpoint is in the description, with its own operation.
func TestDescription(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(encode(description30(nil)), &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if ids[o.OperationID] || o.OperationID == "" {
				t.Errorf("%s %s: the operation %q has another path too", method, path, o.OperationID)
			}
			ids[o.OperationID] = true
		}
	}
	want := 0
	for _, e := range endpoints() {
		want += 4
		if e.since != "" {
			want--
		}
	}
	if len(ids) != want {
		t.Errorf("%d operations, want %d", len(ids), want)
	}
	if len(encode(description30([]string{"openapi/v0.0.38"}))) >= len(encode(description30(nil))) {
		t.Error("the description of one version has all versions")
	}
}

// FuzzSubmission: no body of a submission or of a change panics.
func FuzzSubmission(f *testing.F) {
	f.Add([]byte(`{"script":"#!/bin/sh\ntrue","job":{"name":"x","nodes":[1,2],"environment":{"A":"1"}}}`))
	f.Add([]byte(`{"jobs":[{"environment":["A=1"],"script":"#!/bin/sh"},{"array":"1-3"}]}`))
	f.Add([]byte(`{"comment":"x","hold":true,"time_limit":{"set":true,"number":5}}`))
	p := &stdio.Process{Hostname: func() (string, error) { return "host", nil }}
	api := New(Options{Cluster: &Cluster{process: p}, Now: time.Now})
	f.Fuzz(func(t *testing.T, data []byte) {
		for i := range versions[:3] {
			r := &request{api: api, version: &versions[i], now: time.Unix(1900000000, 0)}
			var in submission
			if json.Unmarshal(data, &in) == nil {
				parts := in.Jobs
				if in.Job != nil {
					parts = append(parts, in.Job)
				}
				s, err := r.translate(&in, parts)
				if (s == nil) == (err == nil) {
					t.Errorf("%v %v", s, err)
				}
			}
			if set, _, err := parseSettings(data); err != nil && set != nil {
				t.Errorf("%v %v", set, err)
			}
		}
	})
}
