package agentapi

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// A thousand tasks read their array's script once; another array's is another,
// and nothing is remembered of one that is gone.
func TestTasksReadTheirArrayOnce(t *testing.T) {
	reads := 0
	c := fake.Cluster(interceptor.Funcs{Get: func(ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		reads++
		return k.Get(ctx, key, o, opts...)
	}})
	s := New(Options{Cluster: c})
	arrays := map[string]*v1alpha1.BatchJob{}
	for _, name := range []string{"one", "two"} {
		b := &v1alpha1.BatchJob{}
		b.Namespace, b.Name, b.UID = "user-anna", name, types.UID("uid-"+name)
		b.Spec.Script = []byte("script of " + name)
		if err := c.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		arrays[name] = b
	}
	script := func(array string) string {
		t.Helper()
		b := &v1alpha1.BatchJob{}
		b.Namespace = "user-anna"
		b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{Name: array, UID: arrays[array].UID}, &v1alpha1.ArrayTask{}
		text, _, err := s.payload(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 1000 {
		for name := range arrays {
			if got := script(name); got != "script of "+name {
				t.Fatalf("a task of %s is given %q", name, got)
			}
		}
	}
	if reads != len(arrays) {
		t.Errorf("%d reads of %d arrays", reads, len(arrays))
	}
	s.payloads.jobChanged(arrays["one"], nil)
	if _, known := s.payloads.of(arrays["one"].UID); known {
		t.Error("an array that is gone is remembered")
	}
}
