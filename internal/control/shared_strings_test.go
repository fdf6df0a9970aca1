package control

import (
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestJobsInMemoryShareStrings: a job in memory has what it has in the API server, except
// labels and payload, and shares the strings and finalizers that other jobs have as well.
func TestJobsInMemoryShareStrings(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	received := func() *v1alpha1.BatchJob {
		b := &v1alpha1.BatchJob{}
		b.Labels = map[string]string{wire.LabelUser: "anna"}
		b.Finalizers = []string{strings.Clone(wire.Finalizer)}
		b.Spec.User, b.Spec.Job.Batch.WorkDir = strings.Clone("anna"), strings.Clone("/home/anna")
		b.Spec.Job.Partitions = []string{strings.Clone("main")}
		if _, err := c.dropUnreadFields(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	one, two := received(), received()
	if one.Labels != nil {
		t.Errorf("labels %v are kept", one.Labels)
	}
	if len(one.Finalizers) != 1 || one.Finalizers[0] != wire.Finalizer || &one.Finalizers[0] != &two.Finalizers[0] {
		t.Errorf("finalizers %v", one.Finalizers)
	}
	same := func(a, b, want string) {
		t.Helper()
		if a != want || b != want || unsafe.StringData(a) != unsafe.StringData(b) {
			t.Errorf("%q and %q are not one %q", a, b, want)
		}
	}
	same(one.Spec.User, two.Spec.User, "anna")
	same(one.Spec.Job.Batch.WorkDir, two.Spec.Job.Batch.WorkDir, "/home/anna")
	same(one.Spec.Job.Partitions[0], two.Spec.Job.Partitions[0], "main")
}

// TestSharedStringsAreBounded: neither many strings nor long ones are kept.
func TestSharedStringsAreBounded(t *testing.T) {
	var s sharedStrings
	for i := range 3 * maxSharedStrings {
		text := strconv.Itoa(i)
		if s.share(&text); text != strconv.Itoa(i) {
			t.Fatalf("%d has become %q", i, text)
		}
	}
	long := strings.Repeat("x", maxSharedLength+1)
	if s.share(&long); s.known[long] != "" || len(s.known) > maxSharedStrings {
		t.Errorf("%d strings are kept, a long one: %v", len(s.known), s.known[long] != "")
	}
}
