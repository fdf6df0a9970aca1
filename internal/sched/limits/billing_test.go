package limits

import "testing"

// The first row is the example of slurm.conf(5).
func TestBilling(t *testing.T) {
	gres := map[string]int64{"gpu": 2, "gpu:a100": 2}
	for _, tt := range []struct {
		weights string
		most    bool
		want    int64
	}{
		{"", false, 4},
		{"CPU=1.0,Mem=0.25G,GRES/gpu=2.0", false, 4 + 2 + 4},
		{"CPU=1.0,Mem=0.25G,GRES/gpu=2.0", true, 4},
		{"cpu=0.3", false, 1},
		{"CPU=0", false, 0},
		{"Mem=1", false, 8192},
		{"Mem=1T", false, 0},
		{"Mem=1M,Node=10", false, 8202},
		{"GRES/gpu:a100=3,License/x=5", true, 6 + 5},
	} {
		b, err := ParseBilling(tt.weights, tt.most)
		if err != nil {
			t.Errorf("%q: %v", tt.weights, err)
			continue
		}
		if got := b.Of(4, 8192, 1, gres, map[string]int64{"x": 1}); got != tt.want {
			t.Errorf("%q, most %v: %d, want %d", tt.weights, tt.most, got, tt.want)
		}
	}
	for _, bad := range []string{"CPU", "CPU=x", "CPU=-1", "colour=1", "gres/=1", "Mem=G", "CPU=NaN", "CPU=Inf", "Mem=1e999"} {
		if b, err := ParseBilling(bad, false); err == nil {
			t.Errorf("%q is parsed as %v", bad, b)
		}
	}
}
