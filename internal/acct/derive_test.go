package acct

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// nobody knows no user.
type nobody struct{}

func (nobody) UserID(string) (int64, bool) { return 0, false }

// TestLimitThatWasNeverSet: sacct of Slurm 22.05.8 shows Partition_Limit for a
// job cancelled before it started, where neither it nor its partition said how
// long; UNLIMITED once it has started.
func TestLimitThatWasNeverSet(t *testing.T) {
	started := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
	for _, c := range []struct {
		name  string
		start *metav1.MicroTime
		asked int32
		row   int32
		state string
		want  int32
	}{
		{"cancelled before", nil, 0, job.Unlimited, "CANCELLED", 0},
		{"waits", nil, 0, job.Unlimited, "PENDING", job.Unlimited},
		{"started", &started, 0, job.Unlimited, "CANCELLED", job.Unlimited},
		{"asked for no limit", nil, job.Unlimited, job.Unlimited, "CANCELLED", job.Unlimited},
		{"the partition's default", nil, 0, 5, "CANCELLED", 5},
	} {
		b := &v1alpha1.BatchJob{}
		b.Spec.Job.Time.Limit, b.Status.State, b.Status.StartTime = c.asked, c.state, c.start
		list := Records(b, &status.Job{ID: 1, State: c.state, TimeLimit: c.row}, "ref", nobody{})
		if have := list[len(list)-1].TimeLimit; have != c.want {
			t.Errorf("%s: %d, want %d", c.name, have, c.want)
		}
	}
}

// TestNodesAskedFor: squeue shows 3 nodes for a pending -N2 -n3 -c2, sacct 2.
func TestNodesAskedFor(t *testing.T) {
	row := &status.Job{ID: 1, State: "PENDING", Nodes: 3, CPUs: 6, TRES: "cpu=6,mem=600M,node=2,billing=6"}
	if have := Records(&v1alpha1.BatchJob{}, row, "ref", nobody{})[0].ReqNodes; have != 2 {
		t.Errorf("%d nodes", have)
	}
}
