package apiclient

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// server returns a server that answers with the given codes in turn, and then with 200.
func server(t *testing.T, codes ...int) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		if i < len(codes) {
			http.Error(w, "no", codes[i])
			return
		}
		w.Write([]byte(`{"jobID":5}`)) //nolint:errcheck // the client reports it
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func client(t *testing.T, s *httptest.Server, urls ...string) *Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("tok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return New(append(urls, s.URL), pool, token)
}

func TestRetry(t *testing.T) {
	s, n := server(t, 503, 500, 429, 401)
	c := client(t, s, "https://127.0.0.1:1")
	w, err := c.Hello(t.Context(), &wire.Hello{JobID: 5})
	if err != nil || w.JobID != 5 || n.Load() != 5 {
		t.Errorf("%+v, %v after %d requests", w, err, n.Load())
	}
	if c.urls[0] != s.URL {
		t.Error("the URL that answers is not preferred")
	}
}

func TestFinalError(t *testing.T) {
	s, n := server(t, 410)
	_, err := client(t, s).Commands(t.Context(), 0)
	var final *FinalError
	if !errors.As(err, &final) || final.Code != 410 || n.Load() != 1 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

func TestContextEndsRetries(t *testing.T) {
	s, _ := server(t)
	c := client(t, s)
	c.urls = []string{"https://127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Report(ctx, &wire.Report{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnknownCertificate(t *testing.T) {
	s, n := server(t)
	c := client(t, s)
	c = New([]string{s.URL}, x509.NewCertPool(), c.token)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Report(ctx, &wire.Report{}); err == nil || n.Load() != 0 {
		t.Errorf("%v, %d requests", err, n.Load())
	}
}
