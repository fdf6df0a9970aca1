package controlplane

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// readHeaderTimeout is how long a client of the socket may take to send the head of a request.
const readHeaderTimeout = 30 * time.Second

// serveSocket serves the API on a Unix socket, without TLS, until ctx ends and requests have
// had drainTimeout to finish. The handlers authenticate every request as they do those that
// come by TLS; there is no client certificate here, so only bearer tokens count, and nobody can
// be taken for the front proxy.
func serveSocket(ctx context.Context, l net.Listener, handler http.Handler) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if s.Shutdown(drain) != nil {
			_ = s.Close()
		}
	}()
	err := s.Serve(l)
	if ctx.Err() == nil {
		return err
	}
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
