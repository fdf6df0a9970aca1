package admission_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestTraceparent: what a client writes into the annotations of traces is never stored. What
// the cluster decides is, and the user cannot change it.
func TestTraceparent(t *testing.T) {
	const own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	foreign := map[string]string{wire.AnnotationTraceparent: strings.ReplaceAll(own, "4", "5"), wire.AnnotationTraceCommand: "sbatch 1"}
	for name, given := range map[string]map[string]string{"none": nil, "foreign": foreign, "note": {"note": "x"}} {
		for decided, want := range map[string]string{"": "", own: own} {
			h := newHarness(t, func(c *admission.Config) {
				c.Trace = func(b *v1alpha1.BatchJob, began time.Time) string {
					if b.Spec.JobID != 101 || !maps.Equal(b.Annotations, given) || !began.Equal(now) {
						t.Errorf("%s: decided about %+v", name, b)
					}
					return decided
				}
			})
			b := h.submit(t, anna, submission(func(b *v1alpha1.BatchJob) { b.Annotations = maps.Clone(given) }))
			if b.Annotations[wire.AnnotationTraceparent] != want || b.Annotations[wire.AnnotationTraceCommand] != "" || b.Annotations["note"] != given["note"] {
				t.Errorf("%s: stored %v", name, b.Annotations)
			}
		}
	}
	off := newHarness(t)
	b := off.submit(t, anna, submission(func(b *v1alpha1.BatchJob) { b.Annotations = maps.Clone(foreign) }))
	if len(b.Annotations) != 0 {
		t.Errorf("without traces, %v is stored", b.Annotations)
	}
}
