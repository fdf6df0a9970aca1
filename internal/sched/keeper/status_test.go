package keeper

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
)

// An agent may report the end of its script before the keeper has acted on
// what ended it.
func TestReportBeforeTheKeeperActs(t *testing.T) {
	killed := wire.Report{Kind: wire.ReportEnded, Signal: 15}
	stopped, nodeLost := killed, killed
	stopped.Stopped = true
	nodeLost.LostNode = "n2"
	for _, tt := range []struct {
		name         string
		change       func(*v1alpha1.BatchJob)
		r            wire.Report
		state, final string
		failures     int
	}{
		{"a script that was killed", nil, killed, "COMPLETING", "FAILED", 0},
		{"a script killed by a requeue", schedtest.Requeued, killed, "COMPLETING", "PENDING", 0},
		{"a script killed by a cancellation", schedtest.Cancelled, killed, "COMPLETING", "CANCELLED", 0},
		{"a script killed with its pod", nil, stopped, "COMPLETING", "PENDING", 1},
		{"a script killed with its pod, not to be requeued", schedtest.NoRequeue, stopped, "COMPLETING", "NODE_FAIL", 0},
		{"a script killed after a node was lost", nil, nodeLost, "RUNNING", "", 0},
		{"a script that succeeds before a requeue", schedtest.Requeued, wire.Report{Kind: wire.ReportEnded}, "COMPLETING", "COMPLETED", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := schedtest.Attempt(v1alpha1.StateRunning)
			b.Name, b.Namespace = "j", "user-anna"
			if tt.change != nil {
				tt.change(b)
			}
			c := fake.Cluster(interceptor.Funcs{}, b)
			k := newKeeper(c)
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			c.ApplyJob(b)
			for _, name := range []string{"n1", "n2"} {
				fake.Feed(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			if err := k.Report(t.Context(), 7, 2, tt.r); err != nil {
				t.Fatal(err)
			}
			got, _ := c.Job(7)
			if got.Status.State != tt.state || got.Status.Final != tt.final {
				t.Errorf("%s, then %s", got.Status.State, got.Status.Final)
			}
			if n := k.progress[7].Failures; n != tt.failures {
				t.Errorf("%d failures in a row", n)
			}
		})
	}
}
