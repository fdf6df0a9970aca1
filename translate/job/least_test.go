package job_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/job"
)

func TestLeastNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		minNodes int32
		nodeList []string
		want     int32
	}{
		"nothing requested":    {0, nil, 1},
		"minimum":              {3, nil, 3},
		"more nodes listed":    {1, []string{"n1", "n2"}, 2},
		"fewer nodes listed":   {3, []string{"n1", "n2"}, 3},
		"only nodes are named": {0, []string{"n1"}, 1},
	} {
		j := job.Job{Shape: job.Shape{MinNodes: tt.minNodes}, Placement: job.Placement{NodeList: tt.nodeList}}
		if got := j.LeastNodes(); got != tt.want {
			t.Errorf("%s: %d nodes, want %d", name, got, tt.want)
		}
	}
}
