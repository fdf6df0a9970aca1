package decide

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// A placed job waits for nodes that boot, without a deadline of its own, and its objects are
// created when all of them are there.
func TestJobAwaitsItsNodes(t *testing.T) {
	timeout := time.Minute
	for name, c := range map[string]struct {
		boot   map[string]Boot
		down   string        // a node
		after  time.Duration // since it was placed
		change func(*v1alpha1.BatchJob)
		want   Kind
		final  string
		why    string
	}{
		"a node boots": {boot: map[string]Boot{"n2": {Waiting: true}}, after: time.Hour, want: Wait},
		"all are there": {boot: map[string]Boot{"n2": {Ready: t0.Add(time.Hour)}}, after: time.Hour + timeout/2,
			want: Create},
		"no agent after they came": {boot: map[string]Boot{"n2": {Ready: t0}}, after: timeout, want: End,
			final: v1alpha1.StatePending, why: "not every node reported within 1m0s"},
		"a node does not come": {boot: map[string]Boot{"n1": {Waiting: true}, "n2": {Failed: "late"}}, want: End,
			final: v1alpha1.StatePending, why: "node n2 did not boot: late"},
		"of a job that must not be requeued": {boot: map[string]Boot{"n2": {Failed: "late"}}, change: noRequeue,
			want: End, final: v1alpha1.StateBootFail, why: "node n2 did not boot: late"},
		"a node was set down": {down: "n2", want: End, final: v1alpha1.StatePending, why: "node n2 was set down"},
		"it is cancelled": {boot: map[string]Boot{"n2": {Waiting: true}}, change: cancelled, want: End,
			final: v1alpha1.StateCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*v1alpha1.BatchJob){}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			b := schedtest.Attempt(v1alpha1.StateConfiguring, changes...)
			f := Facts{
				Job: b, Now: t0.Add(c.after), Rules: Rules{StartTimeout: timeout, PullTimeout: timeout, Requeue: true},
				Boot:        func(n string) Boot { return c.boot[n] },
				Down:        func(n string) bool { return n == c.down },
				Unreachable: func(n string) bool { return c.boot[n].Waiting || c.boot[n].Failed != "" },
			}
			a := Next(f)
			if a.Kind != c.want || a.Outcome.Final != c.final || a.Outcome.Message != c.why {
				t.Errorf("%d %s %q", a.Kind, a.Outcome.Final, a.Outcome.Message)
			}
		})
	}
}
