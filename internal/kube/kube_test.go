package kube

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/stdio"
)

// process returns a process with this environment and these files.
func process(env, files map[string]string) *stdio.Process {
	return &stdio.Process{
		Streams:   stdio.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard},
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Environ:   func() []string { return []string{"PATH=/usr/bin:/bin"} },
		Now:       time.Now,
		ReadFile: func(path string) ([]byte, error) {
			text, ok := files[path]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte(text), nil
		},
		UID: 1000,
	}
}

func kubeconfig(server string, ca []byte, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: user-alice}}
clusters:
- {name: c, cluster: {server: %q, certificate-authority-data: %s}}
users:
- {name: u, user: %s}
`, server, base64.StdEncoding.EncodeToString(ca), user)
}

// serve starts a TLS server and returns its address and CA.
func serve(t *testing.T, h http.HandlerFunc) (string, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// connected returns a client of a server with this handler.
func connected(t *testing.T, user string, h http.HandlerFunc) *Client {
	t.Helper()
	url, ca := serve(t, h)
	p := process(map[string]string{"KUBECONFIG": "/k"}, map[string]string{"/k": kubeconfig(url, ca, user)})
	c, err := Connect(p, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFindOrder(t *testing.T) {
	conf := func(ns string) string {
		return strings.Replace(kubeconfig("https://h:1", nil, "{token: t}"), "user-alice", ns, 1)
	}
	files := map[string]string{
		"/home/.local/state/berth/user.kubeconfig": conf("user-file"),
		"/home/.local/state/berth/kubeconfig":      conf("state"),
		"/home/.kube/config":                       conf("dot-kube"),
		"/explicit":                                conf("explicit"),
		"/etc/passwd":                              "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/people/alice:/bin/bash\n",
		"/env":                                     conf("env"),
		"/var/run/secrets/kubernetes.io/serviceaccount/token":     "tok",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "user-injob\n",
	}
	env := map[string]string{
		"HOME":            "/home",
		"KUBECONFIG":      "/env",
		"BERTH_JOB_ID":    "7",
		"BERTH_KUBE_HOST": "https://10.0.0.1:6443",
	}
	find := func(explicit, want string) {
		t.Helper()
		cfg, err := Find(process(env, files), explicit)
		if err != nil || cfg.Namespace != want {
			t.Fatalf("got %v, %v; want namespace %s", cfg, err, want)
		}
	}
	find("/explicit", "explicit")
	find("", "env")
	delete(env, "KUBECONFIG")
	find("", "user-injob")
	delete(env, "BERTH_JOB_ID")
	find("", "user-file")
	delete(files, "/home/.local/state/berth/user.kubeconfig")
	find("", "state")
	delete(files, "/home/.local/state/berth/kubeconfig")
	for _, path := range []string{
		"/run/berth/1000.kubeconfig", "/run/user/1000/berth.kubeconfig",
		"/people/alice/.local/state/berth/user.kubeconfig", "/people/alice/.local/state/berth/kubeconfig",
	} {
		files[path] = conf("by-uid")
		find("", "by-uid")
		delete(files, path)
	}
	find("", "dot-kube")
	delete(files, "/home/.kube/config")
	_, err := Find(process(env, files), "")
	if KindOf(err) != NoCluster || err.Error() != "no cluster: run 'berth up' or set KUBECONFIG" {
		t.Errorf("nothing there: %v", err)
	}
	env["KUBECONFIG"] = "/missing"
	if _, err := Find(process(env, files), ""); KindOf(err) != BadConfig {
		t.Errorf("missing file: %v", err)
	}
}

func TestMergeOfSeveralFiles(t *testing.T) {
	files := map[string]string{
		"/a/one":    "current-context: x\nclusters: [{name: c, cluster: {server: 'https://one:1', certificate-authority: ca.pem}}]\n",
		"/a/two":    kubeconfig("https://two:2", nil, "{token: t}") + "\n",
		"/b":        "contexts: [{name: x, context: {cluster: c, user: u}}]\n",
		"/a/ca.pem": "CA",
	}
	cfg, err := Find(process(map[string]string{"KUBECONFIG": "/a/one:/gone:/a/two:/b"}, files), "")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Server != "https://one:1" || cfg.Token != "t" || string(cfg.CA) != "CA" || cfg.Namespace != "default" {
		t.Errorf("%+v", cfg)
	}
}

func TestRequests(t *testing.T) {
	c := connected(t, "{token: secret}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("token:", r.Header.Get("Authorization"))
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"method":%q,"path":%q,"query":%q,"type":%q,"body":%q}`,
			r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), body)
	})
	var got struct{ Method, Path, Query, Type, Body string }
	ctx := context.Background()
	if err := c.Get(ctx, "/apis/x", map[string][]string{"a": {"1,2"}}, &got); err != nil || got.Query != "a=1%2C2" {
		t.Errorf("%+v %v", got, err)
	}
	if err := c.Post(
		ctx,
		"/p",
		nil,
		map[string]int{"n": 1},
		&got,
	); err != nil || got.Body != `{"n":1}` ||
		got.Type != "application/json" {
		t.Errorf("%+v %v", got, err)
	}
	if err := c.MergePatch(ctx, "/p", map[string]int{"n": 1}, &got); err != nil || got.Method != "PATCH" ||
		got.Type != "application/merge-patch+json" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestTokenFileIsReadForEachRequest(t *testing.T) {
	var tokens []string
	url, ca := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		fmt.Fprint(w, "{}")
	})
	files := map[string]string{"/k": kubeconfig(url, ca, "{tokenFile: /token}"), "/token": "one\n"}
	c, err := Connect(process(map[string]string{"KUBECONFIG": "/k"}, files), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []string{"one", "two"} {
		files["/token"] = tok + "\n"
		if err := c.Get(context.Background(), "/", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(tokens, " ") != "Bearer one Bearer two" {
		t.Error(tokens)
	}
}

func TestExecCredential(t *testing.T) {
	c := connected(
		t,
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, 'echo "{\"status\":{\"token\":\"$T\"}}"'], env: [{name: T, value: fromplugin}]}}`,
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.Header.Get("Authorization")) },
	)
	var got string
	if err := c.Get(context.Background(), "/", nil, &got); err != nil || got != "Bearer fromplugin" {
		t.Error(got, err)
	}
}

func TestStatusErrors(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(
			`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":%q}`,
			code,
			reason,
			message,
		)
	}
	for _, tt := range []struct {
		code int
		body string
		kind Kind
		want string // part of the message
	}{
		{401, status(401, "Unauthorized", "Unauthorized"), Expired, "does not accept your credential"},
		{403, status(403, "Forbidden", `jobs is forbidden: User "x" cannot list`), Forbidden, "cannot list"},
		{403, status(403, "Forbidden", `admission webhook "batchjobs.berth.hpc" denied the request: Invalid partition name specified`), Denied, "Invalid partition name specified"},
		{400, status(400, "BadRequest", `admission webhook "b.berth.hpc" denied the request: a: b: c`), Denied, "a: b: c"},
		{400, status(400, "BadRequest", `admission webhook "x.site" denied the request without explanation`), Denied,
			`admission webhook "x.site" denied the request without explanation`},
		{429, status(429, "TooManyRequests", `admission webhook "b.berth.hpc" denied the request: full`), Busy, "full"},
		{404, status(404, "NotFound", "not here"), NotFound, "not here"},
		{409, status(409, "AlreadyExists", "there"), AlreadyExists, "there"},
		{409, status(409, "Conflict", "changed"), Conflict, "changed"},
		{422, status(422, "Invalid", "bad field"), Invalid, "bad field"},
		{500, status(500, "InternalError", "failed calling webhook"), Unavailable, "failed calling webhook"},
		{503, "service unavailable\n", Unavailable, "service unavailable"},
		{502, "", Unavailable, "502 Bad Gateway"},
	} {
		c := connected(t, "{token: t}", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.code)
			fmt.Fprint(w, tt.body)
		})
		err := c.Get(context.Background(), "/", nil, nil)
		if KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d %s: kind %d, %v", tt.code, tt.body, KindOf(err), err)
		}
		if tt.kind == Denied && err.Error() != tt.want {
			t.Errorf("denial: %q", err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	for _, tt := range []struct {
		server string
		ca     []byte
		local  bool
		kind   Kind
		want   string
	}{
		{closed.URL, nil, false, Unreachable, "connection refused): check that it runs, or set KUBECONFIG"},
		{closed.URL, nil, true, Unreachable, "is not running: start it with 'berth up'"},
		{"https://no.such.host.invalid", nil, false, Unreachable, "cannot reach the cluster at https://no.such.host.invalid"},
	} {
		c, err := New(process(nil, nil), &Config{Server: tt.server, CA: tt.ca, Local: tt.local})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Get(context.Background(), "/", nil, nil)
		if KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || IsRetryable(err) {
			t.Errorf("%s: %v", tt.server, err)
		}
	}
}

func TestForeignCertificate(t *testing.T) {
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") })
	c, err := New(process(nil, nil), &Config{Server: url, Source: "/k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), "/", nil, nil); KindOf(err) != Untrusted {
		t.Error(err)
	}
}

func TestBrokenResponses(t *testing.T) {
	c := connected(t, "{token: t}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "<html>")
	})
	var out map[string]any
	if err := c.Get(context.Background(), "/cut", nil, &out); !IsRetryable(err) {
		t.Errorf("cut off: %v", err)
	}
	if err := c.Get(context.Background(), "/html", nil, &out); err == nil || IsRetryable(err) {
		t.Errorf("no JSON: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Get(ctx, "/", nil, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
