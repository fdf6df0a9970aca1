package plugin

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// The binding of a workload's pod names its job; Kubernetes binds other pods.
func TestBindingNamesTheJob(t *testing.T) {
	p, _, _ := newPlugin("n1", "n2")
	var got *corev1.Binding
	var fails error
	p.bind = func(_ context.Context, b *corev1.Binding) error { got = b; return fails }
	foreign := pod(1)
	foreign.Name, foreign.Labels = "1", nil
	if st := p.Bind(t.Context(), nil, foreign, "n2"); !st.IsSuccess() || got == nil {
		t.Fatalf("%v", st)
	}
	if got.Target.Name != "n2" || got.Target.Kind != "Node" || got.UID != foreign.UID || got.Namespace != "user-a" ||
		got.Annotations[wire.AnnotationJob] != "7" {
		t.Errorf("%+v", got)
	}
	fails = errors.New("no")
	if st := p.Bind(t.Context(), nil, foreign, "n2"); st.IsSuccess() || st.IsSkip() {
		t.Errorf("a binding that failed: %v", st)
	}
	got = nil
	for name, q := range map[string]*corev1.Pod{"a job's own": pod(1), "of no job": {}} {
		if st := p.Bind(t.Context(), nil, q, "n2"); !st.IsSkip() || got != nil {
			t.Errorf("%s: %v", name, st)
		}
	}
}
