package jobevents

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestEventsOfPools has changes of a pool's status and the events about them, with all events
// and with warnings alone.
func TestEventsOfPools(t *testing.T) {
	in := func(state, reason string, names ...string) v1alpha1.NodePoolStatus {
		var s v1alpha1.NodePoolStatus
		for _, n := range names {
			s.Nodes = append(s.Nodes, v1alpha1.PoolNode{Name: n, State: state, Reason: reason})
		}
		return s
	}
	off := v1alpha1.NodePoolStatus{}
	for name, c := range map[string]struct {
		before, after v1alpha1.NodePoolStatus
		want          string
	}{
		"requested": {off, in(v1alpha1.PoolPoweringUp, "", "c1", "c2"), "Normal PowerUp c[1-2]"},
		"there":     {in(v1alpha1.PoolPoweringUp, "", "c1"), in(v1alpha1.PoolRunning, "", "c1"), "Normal Running c1"},
		"removed":   {in(v1alpha1.PoolRunning, "", "c1"), in(v1alpha1.PoolPoweringDown, "", "c1"), "Normal PowerDown c1"},
		"gone":      {in(v1alpha1.PoolPoweringDown, "", "c1"), off, "Normal PoweredDown c1"},
		"no news":   {in(v1alpha1.PoolRunning, "", "c1"), in(v1alpha1.PoolRunning, "", "c1"), ""},
		"does not come": {in(v1alpha1.PoolPoweringUp, "", "c1", "c2"),
			in(v1alpha1.PoolPoweringDown, "ResumeTimeout reached", "c1", "c2"),
			"Warning NodeFailed c[1-2]: ResumeTimeout reached"},
		"is given up": {in(v1alpha1.PoolPoweringDown, "ResumeTimeout reached", "c1"),
			in(v1alpha1.PoolFailed, "ResumeTimeout reached", "c1"), ""},
		"problem": {off, v1alpha1.NodePoolStatus{Problem: "resources has no cpu"}, "Warning Problem resources has no cpu"},
	} {
		for level, shown := range map[string]bool{
			v1alpha1.JobEventsAll: true, "": strings.HasPrefix(c.want, "Warning"), v1alpha1.JobEventsNone: false,
		} {
			fake := record.NewFakeRecorder(3)
			r := &Recorder{func() string { return level }, fake}
			r.PoolChanged(&v1alpha1.NodePool{Status: c.before}, &v1alpha1.NodePool{Status: c.after})
			close(fake.Events)
			var got []string
			for e := range fake.Events {
				got = append(got, e)
			}
			want := ""
			if shown {
				want = c.want
			}
			if text := strings.Join(got, "\n"); text != want {
				t.Errorf("%s, %q: %q, want %q", name, level, text, want)
			}
		}
	}
}
