package job_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/job"
)

// TestSwitchWait checks the time for which a job waits for few switches, which is at most
// five minutes.
func TestSwitchWait(t *testing.T) {
	for _, tt := range []struct {
		switches, wait, want int32
	}{{0, 0, 0}, {0, 60, 0}, {1, 0, 300}, {2, 60, 60}, {2, 300, 300}, {2, 600, 300}} {
		p := &job.Placement{Switches: tt.switches, SwitchesWait: tt.wait}
		if got := p.SwitchWait(); got != tt.want {
			t.Errorf("%d switches, a wait of %d s: %d s, want %d", tt.switches, tt.wait, got, tt.want)
		}
	}
}
