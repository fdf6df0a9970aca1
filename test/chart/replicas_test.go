package chart

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/eventually"
)

// TestReplicas runs what the chart creates for two schedulers, PostgreSQL and two
// readers: each as a process with the flags of its Deployment. The leader is killed,
// and the queue continues.
func TestReplicas(t *testing.T) {
	url := accttest.Postgres(t)
	p := startPlain(t)
	values := append([]string{"--set=scheduler.replicas=2,api.replicas=2,accounting.storage=postgresql,networkPolicy.enabled=true",
		"--set-string=accounting.postgresql.url=" + strings.ReplaceAll(url, ",", `\,`)}, alice...)
	if output, err := p.install("install", values...); err != nil {
		t.Fatal(err, output)
	}
	stored := data(t, p.must(http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-accounting", ""))
	if stored == "" {
		t.Error("the Secret has no URL")
	}
	first := p.start("berth-scheduler", url)
	eventually.Holds(t, "the first scheduler leads", func() bool { return first.get("/readyz") == "leading" })
	second := p.start("berth-scheduler", url)
	eventually.Holds(t, "the second is ready to", func() bool {
		s := second.get("/readyz")
		return s != "" && s != "leading" && !strings.Contains(s, "refused")
	})
	readers := []*scheduler{p.start("berth-queue", url), p.start("berth-queue", url)}
	for _, r := range readers {
		eventually.Holds(t, "a reader answers", func() bool { return r.get("/readyz") == "the API role alone" })
	}
	p.user("alice", "Administrator")
	before := p.submit("alice")
	eventually.Holds(t, "the readers know the job", func() bool { return slices.Equal(p.queued(), []int64{before}) })
	if !p.gone("/apis/policy/v1/namespaces/berth-system/poddisruptionbudgets/none") || p.gone("/apis/policy/v1/namespaces/berth-system/poddisruptionbudgets/berth-queue") {
		t.Error("the readers have no PodDisruptionBudget")
	}

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // killed
	eventually.Holds(t, "the second scheduler leads", func() bool { return second.get("/readyz") == "leading" })
	after := p.submit("alice")
	if after <= before {
		t.Errorf("ids %d, then %d", before, after)
	}
	eventually.Holds(t, "the readers know both jobs", func() bool { return slices.Equal(p.queued(), []int64{before, after}) })
	eventually.Holds(t, "PostgreSQL has both jobs", func() bool { return recorded(t, url) >= 2 })
}

// queued requests the jobs' ids from the queue API, which readers answer.
func (p *plain) queued() []int64 {
	text, err := p.raw(http.MethodGet, "/apis/queue.berth.hpc/v1alpha1/jobs", "")
	var list struct{ Items []struct{ ID int64 } }
	if err != nil || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	var ids []int64
	for _, j := range list.Items {
		ids = append(ids, j.ID)
	}
	slices.Sort(ids)
	return ids
}

// recorded counts the jobs in the database.
func recorded(t *testing.T, url string) int {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM jobs").Scan(&n); err != nil {
		t.Log(fmt.Errorf("counting: %w", err))
		return 0
	}
	return n
}
