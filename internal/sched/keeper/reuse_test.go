package keeper

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A task whose object has no status of its own gets one when it runs for
// longer than most; until then its end is its first status.
func TestALongTaskGetsAStatusOfItsOwn(t *testing.T) {
	b := aJob(v1alpha1.StateRunning)
	f := Facts{Job: b, Now: t0.Add(time.Second)}
	if got := f.settled(Action{}); got.Kind != Wait {
		t.Errorf("with a status of its own: %+v", got)
	}
	f.Assumed = true
	if got := f.settled(Action{Wake: t0.Add(time.Hour)}); got.Kind != Wait || !got.Wake.Equal(t0.Add(settleTime)) {
		t.Errorf("soon after its start: %+v", got)
	}
	if got := f.settled(Action{Kind: Suspend}); got.Kind != Suspend {
		t.Errorf("with something to do: %+v", got)
	}
	if f.Now = t0.Add(settleTime); f.settled(Action{}).Kind != Record {
		t.Errorf("later: %+v", f.settled(Action{}))
	}
}

// A job that is being deleted stays for as long as another one runs in its pods:
// they would go with it.
func TestADeletedJobKeepsItsPodsForAnother(t *testing.T) {
	b := aJob(v1alpha1.StateCompleted)
	b.DeletionTimestamp = &metav1.Time{Time: t0}
	b.Status.Pods = &v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
	f := Facts{Job: b, Now: t0, Taken: true}
	if got := f.over(); got.Kind != Wait || got.Wake.IsZero() {
		t.Errorf("%+v", got)
	}
	f.Taken, f.Lingering = false, true
	if got := f.over(); got.Kind != Wait || got.Wake.IsZero() {
		t.Errorf("when one is about to: %+v", got)
	}
	f.Lingering = false
	if got := f.over(); got.Kind != Release {
		t.Errorf("when nobody does: %+v", got)
	}
}
