package deb

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSizes compares the sizes of the programs, which make build leaves without symbols,
// with the maximum in the image of each.
func TestSizes(t *testing.T) {
	const mb = 1 << 20
	for _, image := range []struct {
		name     string
		programs []string
		most     int64
	}{
		{"commands", []string{"berth", "berth-tools", "berth-tui"}, 45 * mb},
		{"scheduler", []string{"scheduler"}, 90 * mb},
		{"agent", []string{"agent"}, 10 * mb},
	} {
		t.Run(image.name, func(t *testing.T) {
			var sum int64
			for _, p := range image.programs {
				info, err := os.Stat(filepath.Join("../../bin", p))
				if err != nil {
					t.Skipf("bin/%s is missing: run make build", p)
				}
				sum += info.Size()
				t.Logf("%s: %.1f MB", p, float64(info.Size())/mb)
			}
			if sum > image.most {
				t.Errorf("%d MB, may be %d", sum/mb, image.most/mb)
			}
		})
	}
}
