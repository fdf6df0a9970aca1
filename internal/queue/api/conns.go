package api

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// link is the connection that a request came over. A nil link stands for one
// of which nothing is known.
type link struct {
	closed atomic.Int64 // when, in Unix nanoseconds; 0: it is open
	host   string
	all    *sync.Map // net.Conn to *link, of all that stand
}

// stands tells whether the connection is known to be open still.
func (l *link) stands() bool { return l != nil && l.closed.Load() == 0 }

// outlived tells whether the connection was open still at t.
func (l *link) outlived(t time.Time) bool {
	at := l.closed.Load()
	return at == 0 || at > t.UnixNano()
}

// besides are the other connections from the same host that stand.
func (l *link) besides() (others []*link) {
	if l == nil || l.host == "" {
		return nil
	}
	l.all.Range(func(_, other any) bool {
		if o := other.(*link); o != l && o.host == l.host { //nolint:forcetypeassert // nothing else is in there
			others = append(others, o)
		}
		return true
	})
	return others
}

type linkKey struct{}

// FollowConnections lets the queue API know of a request that ended whether its
// connection did: call it before s serves. Over HTTP/2, which API servers speak
// to extensions, the end of a request alone means that the API server says so.
func FollowConnections(s *http.Server) {
	var links sync.Map // net.Conn to *link
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		l := &link{all: &links}
		l.host, _, _ = net.SplitHostPort(c.RemoteAddr().String())
		links.Store(c, l)
		return context.WithValue(ctx, linkKey{}, l)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateClosed && state != http.StateHijacked {
			return
		}
		if l, ok := links.LoadAndDelete(c); ok {
			l.(*link).closed.Store(time.Now().UnixNano()) //nolint:forcetypeassert // nothing else is in there
		}
	}
}

// linkOf is the connection between the API server and this process that a
// request came over; nil: that is not known, or another role stands between.
func (a *API) linkOf(r *http.Request) *link {
	if r.TLS != nil && a.Proxy.Peer != nil && a.Proxy.Peer(r.TLS.PeerCertificates) {
		return nil
	}
	l, _ := r.Context().Value(linkKey{}).(*link)
	return l
}
