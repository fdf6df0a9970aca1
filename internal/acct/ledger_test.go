package acct_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// Several nodes that are added at once are one event of the cluster, because such an
// event lists all of its nodes.
func TestNodesAddedAtOnceAreOneEventOfTheCluster(t *testing.T) {
	r := acct.NewRecorder(acct.Config{Cluster: fake.Cluster(interceptor.Funcs{}), Row: row, Now: time.Now,
		NodeNames: func([]*corev1.Node) map[string]string { return map[string]string{"a.example": "a"} }})
	got := r.CompleteEvents(
		[]status.AcctEvent{{Start: 5, Node: "a.example"}, {Start: 5}, {Start: 6, Node: "gone"}, {Start: 6}, {Start: 7}},
	)
	if len(got) != 3 || got[0].Node != "a" || got[1].Node != "" || got[1].Start != 5 || got[1].TRES == "" ||
		got[2].Node != "gone" {
		t.Errorf("%+v", got)
	}
	if got := r.CompleteEvents(nil); got != nil {
		t.Errorf("without events: %+v", got)
	}
}
