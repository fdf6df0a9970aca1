package command

import "testing"

// The amount of garbage is near the target for a heap of any size, within the bounds.
func TestGCPercent(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{0, gcPercentMost},
		{16 << 20, gcPercentMost},
		{40 << 20, 320},
		{100 << 20, 120},
		{130 << 20, gcPercentLeast},
		{4 << 30, gcPercentLeast},
	} {
		if got := gcPercent(tt.live); got != tt.want {
			t.Errorf("gcPercent(%d MB) = %d, want %d", tt.live>>20, got, tt.want)
		}
	}
}
