package httpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/httpserver"
)

// pipeListener accepts one end of each of its pipes.
type pipeListener struct {
	conns chan net.Conn
	close func()
}

func listenOnPipes() *pipeListener {
	conns := make(chan net.Conn)
	return &pipeListener{conns, sync.OnceFunc(func() { close(conns) })}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *pipeListener) Close() error { l.close(); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// TestBodyTimeout: a body that does not end is given up after BodyTimeout, and the
// response to a body that did end may take longer. The time is virtual.
func TestBodyTimeout(t *testing.T) {
	const slow = 3 * httpserver.BodyTimeout
	for _, tt := range []struct {
		name, body string
		status     int
		after      time.Duration
	}{
		{"complete", "xx", http.StatusOK, slow},
		{"incomplete", "x", http.StatusRequestTimeout, httpserver.BodyTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						w.WriteHeader(http.StatusRequestTimeout)
						return
					}
					select {
					case <-time.After(slow):
					case <-r.Context().Done(): // a read from the connection has failed
						w.WriteHeader(http.StatusInternalServerError)
					}
				})}
				httpserver.SetLimits(s)
				l := listenOnPipes()
				go s.Serve(l) //nolint:errcheck // it returns when s is closed
				defer s.Close()
				c := l.dial()
				defer c.Close()
				began := time.Now()
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%s", tt.body)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if took := time.Since(began); resp.StatusCode != tt.status || took != tt.after {
					t.Errorf("status %d after %v, want %d after %v", resp.StatusCode, took, tt.status, tt.after)
				}
			})
		})
	}
}
