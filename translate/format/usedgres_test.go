package format

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// A node lists all of its generic resources, those that are not in use with a count of 0.
func TestUsedGRESListsAll(t *testing.T) {
	for _, tt := range []struct{ gres, used, devices, want string }{
		{"gpu:tesla:2", "", "", "gpu:tesla:0(IDX:N/A)"},
		{"fpga:1,gpu:1g.5gb:4,gpu:a100:2", "gpu:1g.5gb:3", "gpu:1g.5gb:3(IDX:0,2-3)",
			"fpga:0(IDX:N/A),gpu:1g.5gb:3(IDX:0,2-3),gpu:a100:0(IDX:N/A)"},
		{"gpu:2,gpu:a100:2", "gpu:a100:1", "", "gpu:0(IDX:N/A),gpu:a100:1"},
		{"gpu:a100:2", "gpu:a100:2,fpga:1", "", "gpu:a100:2,fpga:1"},
		{"", "gpu:1", "", "gpu:1"},
		{"", "", "", "gpu:0"},
	} {
		if got := usedGRES(&status.Node{GRES: tt.gres, GRESUsed: tt.used, GRESDevices: tt.devices}, []string{"gpu"}); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
