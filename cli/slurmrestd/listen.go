package slurmrestd

import (
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
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil // listening fails if there is another file
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
		return errors.New("another process listens there")
	}
	return os.Remove(path)
}

// serveStream serves the requests of one connection (inetd mode).
func serveStream(h http.Handler, in io.Reader, out io.Writer) error {
	ended := make(chan struct{})
	c := &streamConn{in: in, out: out, ended: sync.OnceFunc(func() { close(ended) })}
	l := &oneListener{conn: c, ended: ended}
	s := &http.Server{Handler: h}
	httpserver.SetLimits(s)
	err := s.Serve(l)
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

// streamConn is a connection over two streams without deadlines.
type streamConn struct {
	in    io.Reader
	out   io.Writer
	ended func()
}

func (c *streamConn) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *streamConn) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *streamConn) Close() error                     { c.ended(); return nil }
func (c *streamConn) LocalAddr() net.Addr              { return stream{} }
func (c *streamConn) RemoteAddr() net.Addr             { return stream{} }
func (c *streamConn) SetDeadline(time.Time) error      { return nil }
func (c *streamConn) SetReadDeadline(time.Time) error  { return nil }
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }

// stream is the address of standard input and output.
type stream struct{}

func (stream) Network() string { return "stdio" }
func (stream) String() string  { return "stdio" }
