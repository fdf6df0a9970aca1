package decide

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

func TestScheduledJobIsRequeuedForItsNextTime(t *testing.T) {
	b := aJob("COMPLETED", completing(""))
	b.Spec.Job.Options = map[string]string{wire.OptionCron: "@hourly"}
	if a := Next(Facts{Job: b, Now: t0}); a.Kind != Requeue {
		t.Fatalf("action %d", a.Kind)
	}
	s := b.Status.DeepCopy()
	SetFinal(b, s, t0, 0)
	if s.State != v1alpha1.StatePending || s.EligibleTime == nil || !s.EligibleTime.After(t0) || s.EligibleTime.After(t0.Add(time.Hour)) {
		t.Errorf("%+v", s)
	}
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"held":               func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" },
		"cancelled":          func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} },
		"ended as cancelled": func(b *v1alpha1.BatchJob) { b.Status.State = "CANCELLED" },
		"no schedule":        func(b *v1alpha1.BatchJob) { b.Spec.Job.Options = nil },
		"bad schedule":       func(b *v1alpha1.BatchJob) { b.Spec.Job.Options[wire.OptionCron] = "nonsense" },
	} {
		b := b.DeepCopy()
		change(b)
		if a := Next(Facts{Job: b, Now: t0}); a.Kind == Requeue {
			t.Errorf("%s: it runs again", name)
		}
	}
}
