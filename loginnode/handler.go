package loginnode

import (
	"fmt"
	"net/http"
)

// Handler returns the handler of /metrics, /livez and /readyz, for the pod's own
// network. It reports how many users are logged in, not who.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.metrics.Set("berth_login_early_connections", int64(s.limiter.Pending()))
		s.metrics.Write(w)
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.Ready() {
			http.Error(w, "draining or not listening", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
