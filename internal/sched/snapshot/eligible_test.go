package snapshot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// A job whose start failed waits for its whole delay: it does not start in the second in
// which the delay ends.
func TestEligibleTimeIsRoundedUp(t *testing.T) {
	now := schedtest.Now.Unix()
	for after, want := range map[time.Duration]int64{
		0: now, time.Microsecond: now + 1, 1750 * time.Millisecond: now + 2, 2 * time.Second: now + 2,
	} {
		b := schedtest.Job(1)
		b.Status.EligibleTime = &metav1.MicroTime{Time: schedtest.Now.Add(after)}
		if got := earliestStart(b); got != want {
			t.Errorf("eligible after %v: it starts %d s from now, want %d", after, got-now, want-now)
		}
	}
	b := schedtest.Job(1)
	if got := earliestStart(b); got != 0 {
		t.Errorf("without a time: %d, want 0", got)
	}
	b.Status.EligibleTime, b.Spec.Job.Time.Begin = &metav1.MicroTime{Time: schedtest.Now}, now+60
	if got := earliestStart(b); got != now+60 {
		t.Errorf("with a later begin time: %d, want %d", got, now+60)
	}
}
