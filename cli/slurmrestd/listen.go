package slurmrestd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/httpserver"
)

// listen opens an address: unix:PATH, or [HOST]:PORT.
func listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		return net.Listen("tcp", address)
	}
	if err := removeSocket(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// removeSocket removes the socket of a process that has ended.
func removeSocket(path string) error {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return nil //nolint:nilerr // listening fails if there is another file
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return errors.New("another process listens there")
	}
	return os.Remove(path)
}

// serveStream serves the requests of one connection (inetd mode).
func serveStream(h http.Handler, in io.Reader, out io.Writer) error {
	// Reads of the server need deadlines, which the end of a pipe in memory has.
	input, from := net.Pipe()
	go func() {
		_, _ = io.Copy(from, in) // the server has ended
		_ = from.Close()
	}()
	ended := make(chan struct{})
	c := &streamConn{Conn: input, out: out, ended: sync.OnceFunc(func() { close(ended) })}
	// A client that has sent its requests may close its end before it gets the responses.
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})}
	httpserver.SetLimits(s)
	err := s.Serve(&oneListener{conn: c, ended: ended})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// oneListener accepts one connection, and fails with io.EOF when that has ended.
type oneListener struct {
	conn  net.Conn
	ended chan struct{}
}

func (l *oneListener) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.ended
	return nil, io.EOF
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return stream{} }

// streamConn is a connection that reads from Conn and writes to out.
type streamConn struct {
	net.Conn
	out   io.Writer
	ended func()
}

func (c *streamConn) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *streamConn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }
func (c *streamConn) LocalAddr() net.Addr              { return stream{} }
func (c *streamConn) RemoteAddr() net.Addr             { return stream{} }

func (c *streamConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

// stream is the address of standard input and output.
type stream struct{}

func (stream) Network() string { return "stdio" }
func (stream) String() string  { return "stdio" }
