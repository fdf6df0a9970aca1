// Package httpserver limits what an unauthenticated client can use of an HTTP server:
// connections without requests, headers and bodies that never end, and idle
// connections.
package httpserver

import (
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// HeaderTimeout bounds the TLS handshake and, after it, the header of a request.
	HeaderTimeout = 10 * time.Second
	// IdleTimeout is how long a connection stays open between requests. API servers
	// close their connections sooner.
	IdleTimeout = 3 * time.Minute
	// BodyTimeout bounds the time from the header of a request to the end of its body.
	BodyTimeout = 30 * time.Second
	// MaxHeaderBytes bounds the header of a request: a query may name thousands of
	// jobs.
	MaxHeaderBytes = 256 << 10

	// The limits on connections that have not sent a request yet, from one address
	// and from all addresses. When there are more, the oldest is closed: a client
	// that is about to send a request has one of the newest.
	maxNewPerSource = 256
	maxNew          = 1024
)

// Flow control of HTTP/2. A client, the API server for example, sends the requests
// of all its users over one connection. Bodies that wait to be read must not use up
// the connection's window, since no other body would arrive then: the windows of
// all streams together fit into it. A stream's window is the protocol's default, as
// a client may use that before it has seen the server's settings (RFC 9113, 6.9.2).
const (
	maxStreams       = 250
	streamWindow     = 64 << 10
	connectionWindow = maxStreams * streamWindow
)

// SetLimits sets the limits of s, and wraps its Handler and its ConnState. It must be
// called after these are set and before s serves.
func SetLimits(s *http.Server) {
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = HeaderTimeout, IdleTimeout, MaxHeaderBytes
	s.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:          maxStreams,
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: connectionWindow,
	}
	s.Handler = limitBodies(s.Handler)
	waiting := &newConns{entries: map[net.Conn]*entry{}, sources: map[string]*list.List{}}
	next := s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			waiting.add(c)
		} else {
			waiting.remove(c)
		}
		if next != nil {
			next(c, state)
		}
	}
}

// limitBodies lets reading a body fail after BodyTimeout.
func limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			if control.SetReadDeadline(time.Now().Add(BodyTimeout)) == nil {
				r.Body = &timedBody{r.Body, control}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody removes the deadline when the body has been read: the response may take
// longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { //nolint:errorlint // a Reader returns it as it is
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// newConns are the connections that have not sent a request, the oldest first. It is
// safe for concurrent use.
type newConns struct {
	mu      sync.Mutex
	all     list.List // of *entry
	entries map[net.Conn]*entry
	sources map[string]*list.List // of *entry
}

type entry struct {
	conn          net.Conn
	source        string
	all, ofSource *list.Element
}

// add adds a connection, and closes the oldest one if a limit is exceeded.
func (s *newConns) add(c net.Conn) {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.sources[host]
	if of == nil {
		of = list.New()
		s.sources[host] = of
	}
	e := &entry{conn: c, source: host}
	e.all, e.ofSource = s.all.PushBack(e), of.PushBack(e)
	s.entries[c] = e
	var oldest *list.Element
	switch {
	case of.Len() > maxNewPerSource:
		oldest = of.Front()
	case s.all.Len() > maxNew:
		oldest = s.all.Front()
	default:
		return
	}
	old := oldest.Value.(*entry) //nolint:forcetypeassert // the list holds nothing else
	s.drop(old)
	closeAbruptly(old.conn)
}

func (s *newConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[c]; e != nil {
		s.drop(e)
	}
}

// drop removes a connection from the lists. The caller holds mu.
func (s *newConns) drop(e *entry) {
	delete(s.entries, e.conn)
	s.all.Remove(e.all)
	of := s.sources[e.source]
	if of.Remove(e.ofSource); of.Len() == 0 {
		delete(s.sources, e.source)
	}
}

// closeAbruptly closes a connection without TLS's closing alert, because writing it might
// block. It ignores errors: the connection is of no more use.
func closeAbruptly(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close()
}
