package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// socketSite is a server that listens on a socket without TLS, and by TLS.
type socketSite struct {
	bySocket, byTLS atomic.Int32
	status          atomic.Int32 // of responses by the socket
}

func (s *socketSite) handler(count *atomic.Int32, status func() int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(status())
		fmt.Fprintf(w, `{"said": %q}`, body)
	}
}

// client returns a client of s. listening: there is a socket.
func (s *socketSite) client(t *testing.T, listening bool, user string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "api.sock")
	if listening {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: s.handler(&s.bySocket, func() int { return int(s.status.Load()) })}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	url, ca := serve(t, s.handler(&s.byTLS, func() int { return http.StatusOK }))
	text := strings.Replace(kubeconfig(url, ca, user), "clusters:\n- {name: c, cluster: {", fmt.Sprintf(
		"clusters:\n- {name: c, cluster: {extensions: [{name: other, extension: [1]}, "+
			"{name: berth.hpc/socket, extension: {path: %q}}], ", path), 1)
	c, err := Connect(process(map[string]string{"KUBECONFIG": "/k"}, map[string]string{"/k": text}), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say posts a word and checks that the server has read it.
func say(t *testing.T, c *Client, word string) {
	t.Helper()
	var out struct{ Said string }
	if err := c.Post(context.Background(), "/x", nil, word, &out); err != nil || out.Said != `"`+word+`"` {
		t.Errorf("%q: %q, %v", word, out.Said, err)
	}
}

func TestSocket(t *testing.T) {
	for name, tt := range map[string]struct {
		listening bool
		user      string
		status    int
		want      string // requests by socket and by TLS, of two
	}{
		"the socket answers":           {true, "{token: sesame}", http.StatusOK, "2 0"},
		"there is no socket":           {false, "{token: sesame}", http.StatusOK, "0 2"},
		"the cluster has other tokens": {true, "{token: sesame}", http.StatusUnauthorized, "1 2"},
		"no token":                     {true, "{tokenFile: /t}", http.StatusOK, "0 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &socketSite{}
			s.status.Store(int32(tt.status))
			c := s.client(t, tt.listening, tt.user)
			c.read = func(string) ([]byte, error) { return []byte("sesame"), nil }
			say(t, c, "one")
			say(t, c, "two")
			if got := fmt.Sprint(s.bySocket.Load(), s.byTLS.Load()); got != tt.want {
				t.Errorf("requests by socket and by TLS: %s, want %s", got, tt.want)
			}
		})
	}
}

// TestSocketUpgrade checks that a connection through the socket can change its protocol, as
// those of srun and sattach do.
func TestSocketUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	c, err := New(process(nil, nil), &Config{Server: "https://127.0.0.1:1", Token: "t", Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.Upgrade(context.Background(), "/attach", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}
