package chart

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestBackup does what docs/admin/upgrade.md describes: it copies the records while the
// scheduler runs, and starts a new cluster with the copy. The new cluster has the jobs
// of the lost one, and reuses none of their ids.
func TestBackup(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.db")
	var last int64
	t.Run("before", func(t *testing.T) {
		p := startPlain(t)
		if output, err := p.install("install", ephemeral...); err != nil {
			t.Fatal(err, output)
		}
		storage := filepath.Join(t.TempDir(), "accounting.db")
		s := p.start("berth-scheduler", storage)
		eventually.Holds(t, "the scheduler leads", func() bool { return s.get("/readyz") == "leading" })
		p.user("alice", "Administrator")
		for range 3 {
			last = p.submit("alice")
		}
		eventually.Holds(t, "the records are there", func() bool { return p.records() >= 3 })
		db, err := sql.Open("sqlite", storage)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		// The equivalent of "sqlite3 accounting.db .backup".
		if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", copied); err != nil {
			t.Fatal(err)
		}
	})
	p := startPlain(t)
	if output, err := p.install("install", ephemeral...); err != nil {
		t.Fatal(err, output)
	}
	s := p.start("berth-scheduler", copied)
	eventually.Holds(t, "the scheduler leads", func() bool { return s.get("/readyz") == "leading" })
	p.user("alice", "Administrator")
	eventually.Holds(t, "the old records are there", func() bool { return p.records() >= 3 })
	if id := p.submit("alice"); id <= last {
		t.Errorf("after the restore a job has the id %d; before there was %d", id, last)
	}
}

// records counts what sacct would list.
func (p *plain) records() int {
	text, err := p.raw(http.MethodGet, "/apis/queue.berth.hpc/v1alpha1/records?q={}", "")
	if err != nil {
		return 0
	}
	return strings.Count(text, `"dbIndex":`)
}
