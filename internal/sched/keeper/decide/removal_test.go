package decide

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A running job whose node will be removed is signalled if it has asked for that, and requeued
// after the grace time if that is allowed.
func TestNodeWillBeRemoved(t *testing.T) {
	const grace = 20 * time.Second
	signalled := func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Signal = 10 }
	for name, tt := range map[string]struct {
		change []func(*v1alpha1.BatchJob)
		warned bool
		node   int // that will be removed
		after  time.Duration
		want   Kind
		wake   time.Duration
	}{
		"waits":                     {nil, false, 0, 5 * time.Second, Wait, grace},
		"is requeued":               {nil, false, 0, grace, End, 0},
		"another node":              {nil, false, 1, grace, End, 0},
		"with --no-kill":            {[]func(*v1alpha1.BatchJob){noKill}, false, 1, grace, Wait, 0},
		"with --no-kill, node 0":    {[]func(*v1alpha1.BatchJob){noKill}, false, 0, grace, End, 0},
		"with --no-requeue":         {[]func(*v1alpha1.BatchJob){noRequeue}, false, 0, 2 * grace, Wait, 0},
		"with --signal":             {[]func(*v1alpha1.BatchJob){signalled}, false, 0, 5 * time.Second, WarnRemoval, 0},
		"was signalled":             {[]func(*v1alpha1.BatchJob){signalled}, true, 0, 5 * time.Second, Wait, grace},
		"was signalled, too late":   {[]func(*v1alpha1.BatchJob){signalled}, true, 0, grace, End, 0},
		"--signal, --no-requeue":    {[]func(*v1alpha1.BatchJob){signalled, noRequeue}, false, 0, 2 * grace, WarnRemoval, 0},
		"signalled, --no-requeue":   {[]func(*v1alpha1.BatchJob){signalled, noRequeue}, true, 0, 2 * grace, Wait, 0},
		"its cancellation is first": {[]func(*v1alpha1.BatchJob){cancelled}, false, 0, 0, End, 0},
	} {
		b := aJob(v1alpha1.StateRunning, tt.change...)
		nodes := []string{b.Status.Allocation.Nodes[0].ObjectName(), "other"}
		b.Status.Allocation.Nodes = append(b.Status.Allocation.Nodes[:1:1], v1alpha1.NodeAllocation{Name: "other"})
		r := rules
		r.RemovalGrace = grace
		a := Next(Facts{
			Job: b, Pods: []*corev1.Pod{pod(0), pod(1)}, Now: t0.Add(tt.after), Rules: r,
			Lost: never, Unreachable: never,
			Progress: Progress{Attempt: b.Status.Attempt, RemovalWarned: tt.warned, PodsRead: true},
			Removal: func(node string) (time.Time, string) {
				if node == nodes[tt.node] {
					return t0, "spot"
				}
				return time.Time{}, ""
			},
		})
		if a.Kind != tt.want {
			t.Errorf("%s: action %d %+v, want %d", name, a.Kind, a.Outcome, tt.want)
		}
		if tt.wake != 0 && !a.Wake.Equal(t0.Add(tt.wake)) {
			t.Errorf("%s: wakes at %v, want %v", name, a.Wake, t0.Add(tt.wake))
		}
		if tt.want == End && len(tt.change) == 0 && (a.Outcome.Final != v1alpha1.StatePending ||
			a.Outcome.Message != "node "+nodes[tt.node]+" will be removed (spot)") {
			t.Errorf("%s: %+v", name, a.Outcome)
		}
	}
}
