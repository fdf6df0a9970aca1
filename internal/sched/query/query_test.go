package query

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// newService returns a Service of a cluster with one partition and the node n1.
func newService() (*Service, *control.Cluster) {
	c := fake.Cluster(interceptor.Funcs{})
	s := New(c, time.Now)
	fake.Feed(c, schedtest.Node("n1"), fake.Partition("debug", func(p *v1alpha1.PartitionSpec) {
		p.Default, p.Nodes = true, "ALL"
	}))
	return s, c
}

// Without a planner, rows show every change of the cluster at once, and a snapshot is
// reused while nothing changes.
func TestQueriesWithoutAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newService()
		if rows := s.NodesView(); len(rows) != 1 || rows[0].State != "IDLE" {
			t.Fatalf("%+v", rows)
		}
		first := s.snapshot()
		if s.snapshot() != first {
			t.Error("a new snapshot was made though nothing has changed")
		}
		fake.Feed(c, schedtest.Job(1, schedtest.RunningOn("0-1", "n1")))
		if rows := s.NodesView(); rows[0].State != "MIXED" {
			t.Errorf("with a running job: %+v", rows)
		}
		second := s.snapshot()
		time.Sleep(observeInterval)
		if s.snapshot() == second {
			t.Error("a snapshot is used for longer than the interval")
		}
		if len(s.PartitionsView()) != 1 {
			t.Errorf("%+v", s.PartitionsView())
		}
		if _, ok := s.Planned(1); ok || s.HasPlan() {
			t.Error("there is a plan")
		}
	})
}

// The newest plan answers, and serial numbers count the plans.
func TestPublish(t *testing.T) {
	s, _ := newService()
	for serial := uint64(1); serial <= 2; serial++ {
		p := NewPlan(snapshot.New(s.Input(time.Now())), time.Now(), 1)
		p.Add(7, control.Planned{Reason: "JobArrayTaskLimit"})
		p.Add(7, control.Planned{Reason: "Resources", Priority: int64(serial)})
		p.Add(7, control.Planned{Reason: "Priority"})
		s.Publish(p)
		planned, got := s.Newest()
		if one, ok := s.Planned(7); !ok || got != serial || one.Reason != "Resources" ||
			planned[7].Priority != int64(serial) {
			t.Errorf("plan %d: %+v", got, planned)
		}
	}
}

// A plan shows the changes before it; later ones are shown by the next plan.
func TestShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newService()
		publish := func() {
			t.Helper()
			at := time.Now()
			s.Publish(NewPlan(snapshot.New(s.Input(at)), at, 0))
		}
		shows := func(want bool) {
			t.Helper()
			if s.Shows(time.Now()) != want {
				t.Errorf("shown: %t", !want)
			}
		}
		shows(true) // without a plan every answer is new
		publish()
		shows(true)
		time.Sleep(time.Second)
		shows(true) // nothing has changed
		fake.Feed(c, schedtest.Job(1, schedtest.RunningOn("0-1", "n1")))
		time.Sleep(time.Second)
		shows(false)
		publish()
		shows(true)
	})
}

// The usage of a QOS is that of all its jobs.
func TestUsageOfEachQOS(t *testing.T) {
	s, c := newService()
	fake.Feed(c, &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: "normal"}})
	used := map[string]map[string]float64{"normal": {"billing": 100, "cpu": 7, "wall": 120}}
	s.Usage = func(time.Time, time.Duration, time.Time, func(string) float64, func(string) bool) snapshot.Usage {
		return snapshot.Usage{QOS: used}
	}
	shares := s.SharesView()
	if got := shares.QOSUsage; len(got) != 1 || got["normal"] != 100 {
		t.Errorf("%v", got)
	}
	if got := shares.QOSWallMins; len(got) != 1 || got["normal"] != 2 {
		t.Errorf("wall: %v", got)
	}
}

func TestUsageReset(t *testing.T) {
	now := time.Date(2026, time.May, 14, 15, 0, 0, 0, time.UTC) // a Thursday
	for period, want := range map[string]string{
		"DAILY": "2026-05-14", "WEEKLY": "2026-05-10", "MONTHLY": "2026-05-01",
		"QUARTERLY": "2026-04-01", "YEARLY": "2026-01-01", "NONE": "0001-01-01", "": "0001-01-01",
	} {
		if got := usageReset(now, period).Format(time.DateOnly); got != want {
			t.Errorf("%q: %s, want %s", period, got, want)
		}
	}
}

func TestFeasibleUsesTheNewestNodes(t *testing.T) {
	s, c := newService()
	b := schedtest.Job(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape.CPUsPerTask = 6 })
	if s.Feasible(b) == nil {
		t.Error("6 CPUs of 4 are feasible")
	}
	big := schedtest.Node("n1")
	big.Status.Allocatable["cpu"] = *big.Status.Allocatable.Memory()
	fake.Feed(c, big)
	if err := s.Feasible(b); err != nil {
		t.Errorf("6 CPUs of many: %v", err)
	}
}

func (s *Service) mustForecast(t *testing.T, user string) {
	t.Helper()
	if _, ok := s.Forecast(t.Context(), userJob(user)); !ok {
		t.Fatalf("no forecast for %s", user)
	}
}

func userJob(user string) *v1alpha1.BatchJob {
	return schedtest.Job(1<<53-1, func(b *v1alpha1.BatchJob) { b.Spec.User = user })
}

// Each user has a share of the time, and forecasts wait for each other.
func TestForecastsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newService()
		answered := 0
		for ok := true; ok && answered < 3000; answered++ {
			_, ok = s.Forecast(t.Context(), userJob("greedy"))
			synctest.Wait()
		}
		answered-- // the last was refused; each of the others costs a millisecond at least
		if limit := int(forecastBurst.Milliseconds()); answered != limit {
			t.Errorf("%d forecasts at once, want %d", answered, limit)
		}
		s.mustForecast(t, "modest")
		time.Sleep(time.Second)
		s.mustForecast(t, "greedy")

		_, slot := s.forecasts.limiterFor("")
		slot <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := s.Forecast(ctx, userJob("modest")); ok {
			t.Error("a forecast was made while another is in progress")
		}
		start := time.Now()
		if _, ok := s.Forecast(t.Context(), userJob("modest")); ok || time.Since(start) != forecastTimeout {
			t.Errorf("forecast %v after %v", ok, time.Since(start))
		}
		<-slot
	})
}
