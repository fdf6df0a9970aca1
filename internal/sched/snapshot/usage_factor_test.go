package snapshot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestUsageFactor: the usage of a QOS is multiplied by its factor, or by one if that is not a
// finite number of at least 0.
func TestUsageFactor(t *testing.T) {
	for text, want := range map[string]float64{
		"": 1, "1": 1, "0": 0, "2.5": 2.5, "1e3": 1000, "-1": 1, "x": 1, "NaN": 1, "Inf": 1, "1e999": 1,
	} {
		q := &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Spec: v1alpha1.QOSSpec{UsageFactor: text}}
		factor := UsageFactor([]*v1alpha1.QOS{q})
		if got := factor("high"); got != want || factor("other") != 1 || factor("") != 1 {
			t.Errorf("UsageFactor=%s: %v, another QOS: %v", text, got, factor("other"))
		}
	}
}
