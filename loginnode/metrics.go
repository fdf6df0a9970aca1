package loginnode

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// metrics are counters and gauges by name, with labels in the name as
// Prometheus writes them. They are this small so that a session's child, which
// is this same program, starts without the packages of a metrics library. It is
// safe for concurrent use.
type metrics struct {
	mu     sync.Mutex
	values map[string]int64
}

// Names of the metrics, and what they mean.
var metricHelp = map[string]string{
	"berth_login_connections_total":       "Connections accepted.",
	"berth_login_refused_total":           "Connections closed before the handshake, by reason.",
	"berth_login_logins_total":            "Login attempts by result.",
	"berth_login_connections":             "Connections that are logged in.",
	"berth_login_early_connections":       "Connections that have not logged in yet.",
	"berth_login_sessions":                "Sessions that run.",
	"berth_login_sessions_total":          "Sessions started, by kind.",
	"berth_login_session_failures_total":  "Sessions that could not be given.",
	"berth_login_panics_total":            "Defects that were contained; each cost one session, flow or connection.",
	"berth_login_forwards_total":          "Forwardings asked for, by kind and result.",
	"berth_login_credential_errors_total": "Credentials that could not be made or renewed.",
	"berth_login_pods":                    "Users' pods that this server looks after.",
	"berth_login_pod_failures_total":      "Logins whose pod could not be had.",
	"berth_login_draining":                "1 while the server lets sessions end and takes no logins.",
	"berth_login_goroutines":              "Goroutines of the server.",
	"berth_login_open_files":              "File descriptors of the server.",
}

func (m *metrics) add(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]int64{}
	}
	m.values[name] += n
}

// set makes a gauge's value n.
func (m *metrics) set(name string, n int64) {
	m.add(name, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = n
}

// label puts a label into a metric's name. Values are of this program's own
// choosing, never a client's.
func label(name string, pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%q", pairs[i], pairs[i+1])
	}
	return name + "{" + b.String() + "}"
}

// write prints Prometheus' text format.
func (m *metrics) write(w io.Writer) {
	m.mu.Lock()
	values := maps.Clone(m.values)
	m.mu.Unlock()
	if values == nil {
		values = map[string]int64{}
	}
	values["berth_login_goroutines"] = int64(runtime.NumGoroutine())
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		values["berth_login_open_files"] = int64(len(fds))
	}
	for _, name := range slices.Sorted(maps.Keys(metricHelp)) {
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, metricHelp[name], name, kind)
		series := 0
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if key == name || strings.HasPrefix(key, name+"{") {
				fmt.Fprintf(w, "%s %d\n", key, values[key])
				series++
			}
		}
		if series == 0 {
			fmt.Fprintf(w, "%s 0\n", name)
		}
	}
}

// Handler serves /metrics, /livez and /readyz. It is for the pod's own
// network: it says who is logged in to nobody, but how many are.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.metrics.set("berth_login_early_connections", int64(s.early.Pending()))
		s.metrics.write(w)
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
