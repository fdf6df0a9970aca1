package attach

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connection is a TCP connection between an API server and this process. A nil
// connection stands for one that is not known.
type connection struct {
	closed atomic.Int64 // when, in Unix nanoseconds; 0: it is open
	host   string       // of the API server
	all    *sync.Map    // net.Conn to *connection, of all that are open
}

// isOpen reports whether the connection is known to be open.
func (c *connection) isOpen() bool { return c != nil && c.closed.Load() == 0 }

// openAt reports whether the connection was still open at t.
func (c *connection) openAt(t time.Time) bool {
	at := c.closed.Load()
	return at == 0 || at > t.UnixNano()
}

// others returns the other open connections of the same host.
func (c *connection) others() (list []*connection) {
	if c == nil || c.host == "" {
		return nil
	}
	c.all.Range(func(_, v any) bool {
		if o := v.(*connection); o != c && o.host == c.host { //nolint:forcetypeassert // the map holds nothing else
			list = append(list, o)
		}
		return true
	})
	return list
}

type connectionKey struct{}

// TrackConnections records the connections of s, so that the queue API can find out
// whether the connection of a finished request ended as well. Over HTTP/2, which API
// servers use for extensions, the end of a request alone means that the API server
// reports it. It must be called before s serves.
func TrackConnections(s *http.Server) {
	var open sync.Map // net.Conn to *connection
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		c := &connection{all: &open}
		c.host, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
		open.Store(conn, c)
		return context.WithValue(ctx, connectionKey{}, c)
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if state != http.StateClosed && state != http.StateHijacked {
			return
		}
		if c, ok := open.LoadAndDelete(conn); ok {
			c.(*connection).closed.Store(time.Now().UnixNano()) //nolint:forcetypeassert // the map holds nothing else
		}
	}
}

// connectionOf returns the connection between the API server and this process over
// which the request came, or nil if another of Berth's API roles forwarded it.
func (s *Server) connectionOf(r *http.Request) *connection {
	if s.Proxy.FromPeer(r) {
		return nil
	}
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
