package planner

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// A QOS has used what accounting says, whoever used it.
func TestUsageOfEachQOS(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	fake.Feed(c, &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: "normal"}})
	p := New(c, nil, func() time.Time { return time.Unix(1_800_000_000, 0) }, slog.New(slog.DiscardHandler))
	p.Usage = func(time.Time, time.Duration, time.Time, func(string) float64, func(string) bool) snapshot.Used {
		return snapshot.Used{QOS: map[string]map[string]float64{"normal": {"billing": 100, "cpu": 7, "wall": 120}}}
	}
	if got := p.SharesView().QOSUsage; len(got) != 1 || got["normal"] != 100 {
		t.Errorf("%v", got)
	}
	if got := p.SharesView().QOSWallMins; len(got) != 1 || got["normal"] != 2 {
		t.Errorf("wall: %v", got)
	}
}

// The time that jobs ran counts for their association and for all above it.
func TestWallOfAccountsIsThatOfTheirUsers(t *testing.T) {
	shares := []status.Share{{Account: "root"}, {Account: "chem", Depth: 1}, {Account: "lab", Depth: 2},
		{Account: "lab", User: "anna", Depth: 3}, {Account: "chem", User: "ben", Depth: 2}, {Account: "bio", Depth: 1}, {Account: "bio", User: "anna", Depth: 2}}
	wall := map[status.AssociationKey]float64{{Account: "lab", User: "anna"}: 1, {Account: "chem", User: "ben"}: 10, {Account: "bio", User: "anna"}: 100}
	want := []float64{111, 11, 1, 1, 10, 100, 100}
	for i, s := range withWall(shares, wall) {
		if s.WallMins != want[i] {
			t.Errorf("%s %s: %v minutes, want %v", s.Account, s.User, s.WallMins, want[i])
		}
	}
}
