package statistics_test

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/statistics"
)

func TestCounters(t *testing.T) {
	now := time.Date(2026, 1, 2, 23, 59, 0, 0, time.UTC)
	c := statistics.New(func() time.Time { return now })
	pending := fake.Job(1, "anna", nil)
	running := fake.Job(1, "anna", fake.InState(v1alpha1.StateRunning))
	suspended := fake.Job(1, "anna", fake.InState(v1alpha1.StateSuspended))
	failed := fake.Job(1, "anna", fake.InState(v1alpha1.StateTimeout))
	c.JobChanged(nil, pending) // fills the store
	c.StartJobs()
	c.JobChanged(nil, pending)
	c.JobChanged(pending, running)
	c.JobChanged(running, suspended)
	c.JobChanged(suspended, running) // is no second start
	c.JobChanged(running, failed)
	c.JobChanged(failed, nil)
	done := c.StartRequest("GET_JOBS", &directory.Caller{Name: "anna", User: fake.User("anna", 1001)})
	now = now.Add(5 * time.Millisecond)
	if d, _ := c.Snapshot(); d.Answering != 1 {
		t.Errorf("%d requests are being served", d.Answering)
	}
	done()
	d, reset := c.Snapshot()
	if d.Submitted != 1 || d.Started != 1 || d.Failed != 1 || d.Completed != 0 || reset {
		t.Errorf("%+v", d)
	}
	if len(d.Types) != 1 || d.Types[0].Name != "GET_JOBS" || d.Types[0].Count != 1 || d.Types[0].Total != 5000 {
		t.Errorf("types: %+v", d.Types)
	}
	if len(d.Users) != 1 || d.Users[0].ID != 1001 {
		t.Errorf("users: %+v", d.Users)
	}
	now = now.Add(time.Minute) // past midnight
	c.JobChanged(nil, pending)
	c.StartRequest("GET_JOBS", &directory.Caller{Name: "anna"})()
	if d, reset = c.Snapshot(); !reset || d.Submitted != 1 || len(d.Types) != 1 {
		t.Errorf("before the first snapshot after midnight: %+v, reset %v", d, reset)
	}
	if _, reset = c.Snapshot(); reset {
		t.Error("midnight is reported twice")
	}
	now = now.Add(24 * time.Hour)
	if d, reset = c.Snapshot(); !reset || d.Submitted != 0 || len(d.Types) != 0 ||
		d.Since != now.Truncate(24*time.Hour).Unix() {
		t.Errorf("after midnight: %+v, reset %v", d, reset)
	}
}
