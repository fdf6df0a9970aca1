package admission_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// forecaster returns a forecast for each component of the job.
type forecaster struct{ calls int }

func (f *forecaster) Forecast(_ context.Context, b *v1alpha1.BatchJob) (*wire.Forecast, bool) {
	f.calls++
	if b.Spec.Job.Name == "busy" {
		return nil, false
	}
	return &wire.Forecast{Start: 1767323045, Parts: make([]wire.ForecastPart, 1+len(b.Spec.Components))}, true
}

func TestForecastOfADryRun(t *testing.T) {
	f := &forecaster{}
	h := newHarness(t, func(c *admission.Config) { c.Forecast = f })
	forecast := func(change func(*v1alpha1.BatchJob), dry bool) string {
		b, refused := h.create(t, anna, submission(func(b *v1alpha1.BatchJob) {
			b.Annotations = map[string]string{wire.AnnotationForecast: "forged"}
			if change != nil {
				change(b)
			}
		}), dry)
		if refused != nil {
			t.Fatal(refused)
		}
		return b.Annotations[wire.AnnotationForecast]
	}
	if got := forecast(nil, true); got != `{"start":1767323045,"parts":[{"id":101,"partition":"","cpus":0,"nodes":""}]}` {
		t.Error(got)
	}
	two := func(b *v1alpha1.BatchJob) { b.Spec.Components = []job.Job{b.Spec.Job} }
	if got := forecast(two, true); !strings.Contains(got, `"id":101`) || !strings.Contains(got, `"id":102`) {
		t.Error(got)
	}
	if got := forecast(func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "busy" }, true); got != "{}" {
		t.Error(got)
	}
	if h.ids.last.Load() != 100 || f.calls != 3 {
		t.Errorf("%d ids allocated, %d forecasts", h.ids.last.Load()-100, f.calls)
	}
	if got := forecast(nil, false); got != "" || f.calls != 3 {
		t.Errorf("a submission: %q, %d forecasts", got, f.calls)
	}
	if forecast(func(b *v1alpha1.BatchJob) { b.Annotations = nil }, true); f.calls != 3 {
		t.Error("a dry run that requests no forecast has one")
	}
	if _, refused := h.create(t, ben, submission(func(b *v1alpha1.BatchJob) {
		b.Annotations = map[string]string{wire.AnnotationForecast: ""}
	}), true); refused == nil || f.calls != 3 {
		t.Error("a forecast for a caller who may not submit")
	}
}

// TestDryRunsForAForecast: as in Slurm, --test-only refuses a job in a reservation that has
// not begun, and accepts -N0. A submission is not checked as a dry run because it has the
// annotation of one.
func TestDryRunsForAForecast(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, &v1alpha1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ReservationObject("later")},
		Spec: v1alpha1.ReservationSpec{
			StartTime: metav1.NewTime(now.Add(time.Hour)), Duration: 60, Users: []string{"anna"},
		},
	})
	refusalOf := func(dry bool, change func(*job.Job)) string {
		_, refused := h.create(t, anna, submission(func(b *v1alpha1.BatchJob) {
			b.Annotations = map[string]string{wire.AnnotationForecast: ""}
			change(&b.Spec.Job)
		}), dry)
		if refused == nil {
			return ""
		}
		return refused.Message
	}
	reserved := func(j *job.Job) { j.Reservation = "later" }
	inIt := func(j *job.Job) { j.Reservation, j.Time.Begin = "later", now.Unix()+3600 }
	noNodes := func(j *job.Job) { j.Options = map[string]string{"nodes": "0"} }
	for i, c := range []struct {
		dry    bool
		change func(*job.Job)
		want   string
	}{
		{true, reserved, string(refusal.InvalidTime)}, {false, reserved, ""}, {true, inIt, ""},
		{true, noNodes, ""}, {false, noNodes, string(refusal.InvalidNodeCount)},
	} {
		if got := refusalOf(c.dry, c.change); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
