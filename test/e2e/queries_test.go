package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// allocated is how much the cluster's process has allocated since it started,
// in bytes.
func (c *caller) allocated(t *testing.T) float64 {
	t.Helper()
	code, text := c.do(t, http.MethodGet, "/metrics", nil)
	_, rest, found := strings.Cut(text, "\ngo_memstats_alloc_bytes_total ")
	if code != http.StatusOK || !found {
		t.Fatalf("/metrics: %d", code)
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// floodOfRanges: requests of a few hundred bytes that mean millions of ids and nodes.
// Most of what the process allocates in the meantime is other work; if one of the
// requests were expanded, it would be several times the ceiling.
func (s *shared) floodOfRanges(t *testing.T, id string) {
	const ceiling = 256 << 20
	var ids, nodes []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("%d_[0-3999999]", i+1))
	}
	for i := range 50 {
		nodes = append(nodes, fmt.Sprintf("n%d[0-65535]", i))
	}
	list, hosts := url.QueryEscape(strings.Join(ids, ",")), url.QueryEscape(strings.Join(nodes, ","))
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	const accounting = queueRoot
	for _, path := range []string{
		queueRoot + "/jobs?id=" + list, queueRoot + "/jobs?nodes=" + hosts,
		queueRoot + "/steps?id=" + list, queueRoot + "/steps?nodes=" + hosts,
		accounting + "/records?q=" + url.QueryEscape(`{"jobs":["`+strings.Join(ids, `","`)+`"]}`),
		accounting + "/records?q=" + url.QueryEscape(`{"nodes":["`+strings.Join(nodes, `","`)+`"]}`),
	} {
		before := admin.allocated(t)
		code, text := bob.do(t, http.MethodGet, path, nil)
		if got := admin.allocated(t) - before; got > ceiling || code >= http.StatusInternalServerError || code == http.StatusNotFound {
			t.Errorf("%.60s: %d %.100s, %.0f MiB allocated", path, code, text, got/(1<<20))
		}
	}
	for _, op := range []object{
		{"verb": "cancel", "jobs": ids},
		{"verb": "hold", "jobs": ids},
		{"verb": "update", "jobs": []string{id}, "set": object{"Dependency": "afterany:" + strings.Repeat("1:", 60_000) + "1"}},
	} {
		before := admin.allocated(t)
		code, text := bob.do(t, http.MethodPost, queueRoot+"/operations", op)
		if got := admin.allocated(t) - before; got > ceiling || code >= http.StatusInternalServerError || code == http.StatusNotFound {
			t.Errorf("%v: %d %.100s, %.0f MiB allocated", op["verb"], code, text, got/(1<<20))
		}
	}
	s.works(t)
}
