package inprocess

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// client returns an HTTP client whose requests are calls of the handler.
func client(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	var s Server
	s.Serve(t.Context(), h)
	return &http.Client{Transport: s.Transport("secret")}
}

// TestRequest: the handler sees what a server of HTTP would, and the client its answer.
func TestRequest(t *testing.T) {
	type key struct{}
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || string(text) != "the body" {
			t.Errorf("body %q, %v", text, err)
		}
		if r.Method != http.MethodPut || r.RequestURI != "/a%20b?c=d" || r.URL.Path != "/a b" || r.Host != "cluster:1" ||
			r.Header.Get("X-Sent") != "yes" || r.Header.Get("Authorization") != "Bearer secret" || r.TLS != nil {
			t.Errorf("%s %s of %s: %v", r.Method, r.RequestURI, r.Host, r.Header)
		}
		if r.Context().Value(key{}) != nil {
			t.Error("the handler has the values of the client's context")
		}
		r.Header.Set("X-Sent", "changed")
		w.Header().Set("X-Answer", "first")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Answer", "too late")
		_, _ = io.WriteString(w, "short and stout")
	})
	ctx := context.WithValue(t.Context(), key{}, "value")
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://cluster:1/a%20b?c=d", strings.NewReader("the body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Sent", "yes")
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil || string(text) != "short and stout" || resp.StatusCode != http.StatusTeapot ||
		resp.Header.Get("X-Answer") != "first" || r.Header.Get("X-Sent") != "yes" || r.Header.Get("Authorization") != "" {
		t.Errorf("%d %v %q, %v; request %v", resp.StatusCode, resp.Header, text, err, r.Header)
	}
}

// TestNothingWritten: a handler that writes nothing answers 200.
func TestNothingWritten(t *testing.T) {
	resp, err := client(t, func(http.ResponseWriter, *http.Request) {}).Get("https://cluster/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if text, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || len(text) != 0 || err != nil {
		t.Errorf("%d %q, %v", resp.StatusCode, text, err)
	}
}

// TestStream: each line arrives when it is flushed, and the end of the reader ends the handler.
func TestStream(t *testing.T) {
	next, ended := make(chan string), make(chan error, 1)
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		for {
			select {
			case line := <-next:
				_, _ = io.WriteString(w, line+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				_, err := io.WriteString(w, "nobody reads this")
				ended <- err
				return
			}
		}
	})
	resp, err := c.Get("https://cluster/watch")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, line := range []string{"one", "two"} {
		next <- line
		if !lines.Scan() || lines.Text() != line {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a write after the end of the reader succeeded")
	}
}

// TestSlowReader: a handler is not further ahead of its reader than the limit, and every byte
// arrives.
func TestSlowReader(t *testing.T) {
	const blocks, size = 40, maxBuffered / 8
	var written atomic.Int64
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range blocks {
			if n, err := w.Write(bytes.Repeat([]byte{byte(i)}, size)); n != size || err != nil {
				t.Errorf("block %d: %d, %v", i, n, err)
			}
			written.Add(size)
		}
	})
	resp, err := c.Get("https://cluster/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	block, read := make([]byte, size), int64(0)
	for i := range blocks {
		if _, err := io.ReadFull(resp.Body, block); err != nil || block[0] != byte(i) || block[size-1] != byte(i) {
			t.Fatalf("block %d: %v", i, err)
		}
		read += size
		if ahead := written.Load() - read; ahead > maxBuffered+size {
			t.Fatalf("the handler is %d bytes ahead", ahead)
		}
	}
	if n, err := resp.Body.Read(block); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// TestCancelled: the end of the request's context ends the wait for an answer.
func TestCancelled(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", resp, err)
	}
	<-ended
}

// TestServing: there is no answer before Serve, nor after the end of its context, which ends
// what is being answered.
func TestServing(t *testing.T) {
	var s Server
	c := &http.Client{Transport: s.Transport("secret")}
	get := func() (*http.Response, error) { return c.Get("https://cluster/") }
	if _, err := get(); !errors.Is(err, ErrNotServing) { //nolint:bodyclose // there is none
		t.Errorf("before Serve: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan struct{})
	defer close(read)
	s.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-read
	}))
	resp, err := get()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, ErrNotServing) {
		t.Errorf("a stream at the end: %v", err)
	}
	if _, err := get(); !errors.Is(err, ErrNotServing) { //nolint:bodyclose // there is none
		t.Errorf("after the end: %v", err)
	}
}

// TestPanic: a handler that panics ends its response, and nothing else.
func TestPanic(t *testing.T) {
	var flush atomic.Bool
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		if flush.Load() {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Get("https://cluster/"); err == nil || !strings.Contains(err.Error(), "ended the response") { //nolint:bodyclose // there is none
		t.Errorf("%v", err)
	}
	flush.Store(true)
	resp, err := c.Get("https://cluster/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if text, err := io.ReadAll(resp.Body); string(text) != "begun" || err == nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCloseNotify: the API server's writers ask for this interface.
func TestCloseNotify(t *testing.T) {
	told := make(chan bool, 1)
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		gone := w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // as the API server does
		w.(http.Flusher).Flush()
		told <- <-gone
	})
	resp, err := c.Get("https://cluster/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	eventually.Holds(t, "the handler is told", func() bool { return len(told) == 1 })
}
