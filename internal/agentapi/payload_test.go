package agentapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// The script of an array is read once for a thousand tasks, and for each array by itself. It
// is forgotten when the array is deleted.
func TestTasksReadTheirArrayOnce(t *testing.T) {
	reads := 0
	c := fake.Cluster(fake.CountReads(&reads))
	s := New(Options{Cluster: c})
	arrays, tasks := map[string]*v1alpha1.BatchJob{}, map[string]*v1alpha1.BatchJob{}
	for _, name := range []string{"one", "two"} {
		b := &v1alpha1.BatchJob{}
		b.Namespace, b.Name, b.UID = "user-anna", name, types.UID("uid-"+name)
		b.Spec.Script = []byte("script of " + name)
		if err := c.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		arrays[name] = b
		task := &v1alpha1.BatchJob{}
		task.Namespace, task.Name, task.UID = "user-anna", name+"-task", types.UID("uid-task-of-"+name)
		task.Spec.Origin, task.Spec.Task = &v1alpha1.Origin{Name: name, UID: b.UID}, &v1alpha1.ArrayTask{}
		if err := c.Client.Create(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		tasks[name] = task
	}
	script := func(array string) string {
		t.Helper()
		text, _, err := s.script(t.Context(), tasks[array])
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
	if reads != 2*len(arrays) { // the first task's object, and the array's
		t.Errorf("%d reads for the tasks of %d arrays", reads, len(arrays))
	}
	s.payloads.jobChanged(arrays["one"], nil)
	if _, known := s.payloads.of(arrays["one"].UID); known {
		t.Error("an array that is gone is remembered")
	}
}
