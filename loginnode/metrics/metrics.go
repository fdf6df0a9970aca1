// Package metrics counts what the login node does, in Prometheus' text format.
package metrics

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Metrics holds counters and gauges by name, with labels in the name as Prometheus
// writes them. It is this small because the child of each session is the same
// program, and would start slower with a metrics library. It is safe for concurrent
// use; the zero value is empty.
type Metrics struct {
	mu     sync.Mutex
	values map[string]int64
}

// help describes the metrics by name.
var help = map[string]string{
	"berth_login_connections_total":       "Connections accepted.",
	"berth_login_refused_total":           "Connections closed before the handshake, by reason.",
	"berth_login_logins_total":            "Login attempts by result.",
	"berth_login_connections":             "Connections that are logged in.",
	"berth_login_early_connections":       "Connections that have not logged in yet.",
	"berth_login_sessions":                "Running sessions.",
	"berth_login_sessions_total":          "Sessions started, by kind.",
	"berth_login_session_failures_total":  "Sessions that could not be started.",
	"berth_login_panics_total":            "Panics that were recovered; each ended one session, stream or connection.",
	"berth_login_forwards_total":          "Requested forwardings, by kind and result.",
	"berth_login_credential_errors_total": "Credentials that could not be issued or renewed.",
	"berth_login_pods":                    "Users' pods that this server manages.",
	"berth_login_pod_failures_total":      "Logins whose pod could not be started.",
	"berth_login_draining":                "1 while the server drains: it accepts no logins and waits for sessions to end.",
	"berth_login_goroutines":              "Goroutines of the server.",
	"berth_login_open_files":              "File descriptors of the server.",
}

// Add adds n to a counter or gauge.
func (m *Metrics) Add(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]int64{}
	}
	m.values[name] += n
}

// Set sets a gauge.
func (m *Metrics) Set(name string, n int64) {
	m.Add(name, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = n
}

// Label returns a metric's name with labels. Their values must not come from
// clients.
func Label(name string, pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%q", pairs[i], pairs[i+1])
	}
	return name + "{" + b.String() + "}"
}

// Write writes all metrics in Prometheus' text format.
func (m *Metrics) Write(w io.Writer) {
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
	for _, name := range slices.Sorted(maps.Keys(help)) {
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help[name], name, kind)
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
