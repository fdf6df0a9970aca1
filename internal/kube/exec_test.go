package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// countingPlugin returns the user entry of a kubeconfig whose plugin prints token-1,
// token-2 and so on, each with the expiry.
func countingPlugin(dir string, expires time.Time) string {
	script := fmt.Sprintf(
		`echo run >>%[1]s/runs; printf '{"status":{"token":"token-%%d"%[2]s}}' $(grep -c run %[1]s/runs)`,
		dir,
		expiry(expires),
	)
	return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, %q]}}", script)
}

func expiry(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(`,"expirationTimestamp":%q`, t.UTC().Format(time.RFC3339))
}

// A plugin runs again only after its credential has expired.
func TestCredentialPluginRunsAgainAfterExpiry(t *testing.T) {
	expires := time.Now().Add(time.Hour).Truncate(time.Second)
	var tokens []string
	url, ca := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		fmt.Fprint(w, "{}")
	})
	p := process(
		map[string]string{"KUBECONFIG": "/k"},
		map[string]string{"/k": kubeconfig(url, ca, countingPlugin(t.TempDir(), expires))},
	)
	now := time.Now()
	p.Now = func() time.Time { return now }
	c, err := Connect(p, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Get(t.Context(), "/", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	now = expires.Add(time.Second)
	if err := c.Get(t.Context(), "/", nil, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"token-1", "token-1", "token-2"}; !slices.Equal(tokens, want) {
		t.Errorf("the server saw %v, want %v", tokens, want)
	}
}

// A request that the server answers with 401 is sent once more with its body and a new
// credential; so are requests for a stream and for another protocol.
func TestCredentialPluginRunsAgainAfterUnauthorized(t *testing.T) {
	valid := "token-2"
	var bodies []string
	c := connected(t, countingPlugin(t.TempDir(), time.Time{}), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if r.Header.Get("Upgrade") != "" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_ = conn.Close()
			return
		}
		fmt.Fprint(w, "{}\n")
	})
	if err := c.Post(t.Context(), "/", nil, map[string]int{"a": 1}, nil); err != nil {
		t.Error(err)
	}
	valid = "token-3"
	if err := c.Stream(t.Context(), "/", nil, func([]byte) error { return nil }); err != nil {
		t.Error(err)
	}
	valid = "token-4"
	if conn, err := c.Upgrade(t.Context(), "/", "x"); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	if want := []string{`{"a":1}`, "", ""}; !slices.Equal(bodies, want) {
		t.Errorf("the server accepted %q, want %q", bodies, want)
	}
	valid = "another's"
	if err := c.Get(t.Context(), "/", nil, nil); KindOf(err) != Expired {
		t.Errorf("a refused credential: %v", err)
	}
}

// A relative path of a plugin is relative to the kubeconfig that contains it, which need not be the
// first one.
func TestRelativeCredentialPlugin(t *testing.T) {
	dir := t.TempDir()
	plugin := "#!/bin/sh\necho '{\"status\":{\"token\":\"beside\"}}'\n"
	if err := os.WriteFile(filepath.Join(dir, "plugin"), []byte(plugin), 0o700); err != nil {
		t.Fatal(err)
	}
	var got string
	url, ca := serve(
		t,
		func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization"); fmt.Fprint(w, "{}") },
	)
	second := filepath.Join(dir, "config")
	p := process(map[string]string{"KUBECONFIG": "/first/config:" + second}, map[string]string{
		"/first/config": "current-context: here\n",
		second:          kubeconfig(url, ca, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}"),
	})
	c, err := Connect(p, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), "/", nil, nil); err != nil || got != "Bearer beside" {
		t.Errorf("%q, %v", got, err)
	}
}
