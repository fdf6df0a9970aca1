// Package httpserver bounds what a client can take from an HTTP server before
// anybody knows who it is: connections that ask nothing, headers and bodies
// that never end, idle connections.
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
	// HeaderTime bounds the TLS handshake and, after it, a request's header.
	HeaderTime = 10 * time.Second
	// IdleTime is how long a connection is kept without a request. API servers
	// close theirs sooner.
	IdleTime = 3 * time.Minute
	// BodyTime bounds the reading of a request's body.
	BodyTime = 30 * time.Second
	// HeaderBytes bounds a request's header: a query may name thousands of jobs.
	HeaderBytes = 256 << 10

	// Connections that have not sent a request yet, of one address and of all
	// together. When there are more, the oldest is closed: one that is about to
	// send a request is among the youngest.
	newOfSource = 256
	newOfAll    = 1024
)

// Bound sets the limits of s and wraps its handler and its ConnState: call it
// after these are set and before s serves.
func Bound(s *http.Server) {
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = HeaderTime, IdleTime, HeaderBytes
	s.Handler = timedBodies(s.Handler)
	silent := &silent{entries: map[net.Conn]*entry{}, sources: map[string]*list.List{}}
	next := s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			silent.add(c)
		} else {
			silent.remove(c)
		}
		if next != nil {
			next(c, state)
		}
	}
}

// timedBodies ends the reading of bodies after BodyTime.
func timedBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			if control.SetReadDeadline(time.Now().Add(BodyTime)) == nil {
				r.Body = &timedBody{r.Body, control}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody takes the deadline back when it has been read: an answer may take
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

// silent are the connections that have not sent a request, oldest first. Safe
// for concurrent use.
type silent struct {
	mu      sync.Mutex
	all     list.List // of *entry
	entries map[net.Conn]*entry
	sources map[string]*list.List // of *entry
}

type entry struct {
	conn         net.Conn
	source       string
	all, ofOwner *list.Element
}

func (s *silent) add(c net.Conn) {
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
	e.all, e.ofOwner = s.all.PushBack(e), of.PushBack(e)
	s.entries[c] = e
	var oldest *list.Element
	switch {
	case of.Len() > newOfSource:
		oldest = of.Front()
	case s.all.Len() > newOfAll:
		oldest = s.all.Front()
	default:
		return
	}
	old := oldest.Value.(*entry) //nolint:forcetypeassert // nothing else is in there
	s.drop(old)
	hangUp(old.conn)
}

func (s *silent) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[c]; e != nil {
		s.drop(e)
	}
}

// drop forgets a connection. The caller holds mu.
func (s *silent) drop(e *entry) {
	delete(s.entries, e.conn)
	s.all.Remove(e.all)
	of := s.sources[e.source]
	if of.Remove(e.ofOwner); of.Len() == 0 {
		delete(s.sources, e.source)
	}
}

// hangUp closes a connection without a word, which might block.
func hangUp(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // nobody is left to tell
}
