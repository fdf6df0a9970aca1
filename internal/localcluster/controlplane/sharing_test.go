package controlplane

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-hpc/berth/internal/wire"
)

func jobText(id int, name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-%d",`+
		`"namespace":"user-anna","labels":{"berth.hpc/user":"anna","berth.hpc/job-id":"%d"},"finalizers":["berth.hpc/job"]},`+
		`"spec":{"jobID":%d,"user":"anna","partition":"main","job":{"name":%q,"shape":{"minNodes":1,"tasks":1},`+
		`"placement":{"nodeList":["n1","n2"]}}}}`, id, id, id, name)
}

func address(m any) uintptr { return reflect.ValueOf(m).Pointer() }

// TestEqualJobsShareTheirMaps: what is decoded is what the plain codec decodes, and jobs
// that are equal, or parts of them, are the same maps.
func TestEqualJobsShareTheirMaps(t *testing.T) {
	plain := unstructured.UnstructuredJSONScheme
	c := &sharingCodec{Codec: plain}
	decode := func(id int, name string) (spec, j map[string]any) {
		t.Helper()
		got, _, err := c.Decode(jobText(id, name), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := plain.Decode(jobText(id, name), nil, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\nwant %v (%v)", got, want, err)
		}
		spec = got.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		return spec, spec["job"].(map[string]any)
	}
	spec1, job1 := decode(1, "a")
	spec2, job2 := decode(2, "a")
	_, job3 := decode(3, "b")
	if address(spec1) == address(spec2) {
		t.Error("two jobs have one spec")
	}
	if address(job1) != address(job2) {
		t.Error("equal jobs are kept twice")
	}
	if address(job1) == address(job3) {
		t.Error("different jobs are one")
	}
	if address(job1["shape"]) != address(job3["shape"]) || address(job1["placement"]) != address(job3["placement"]) {
		t.Error("equal parts of different jobs are kept twice")
	}
}

// TestSharedJobsMayChange: the metadata and the spec of an object can be changed, as the
// API server does before it stores them, without a change of other objects.
func TestSharedJobsMayChange(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	var objects [2]*unstructured.Unstructured
	for i := range objects {
		objects[i] = &unstructured.Unstructured{}
		if _, _, err := c.Decode(jobText(i, "a"), nil, objects[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := objects[1].DeepCopy()
	o := objects[0]
	o.SetResourceVersion("7")
	o.SetFinalizers(nil)
	o.SetLabels(map[string]string{wire.LabelUser: "ben"})
	o.Object["spec"].(map[string]any)["suspend"] = true
	o.Object["status"] = map[string]any{"state": "RUNNING"}
	if !reflect.DeepEqual(objects[1], want) {
		t.Errorf("%v\nwant %v", objects[1], want)
	}
}

// TestSharingIsBounded: however different jobs are, few are kept; and many goroutines may
// decode at the same time.
func TestSharingIsBounded(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2 * maxShared {
				o, err := runtime.Decode(c, jobText(i, fmt.Sprint("name", i)))
				if err != nil || o.(*unstructured.Unstructured).GetName() != fmt.Sprint("j-", i) {
					t.Errorf("%d: %v %v", g, o, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.maps.newer) + len(c.maps.older); n > 2*maxShared {
		t.Errorf("%d maps are kept", n)
	}
	large := []byte(`{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{},"spec":{"job":{"name":"` +
		fmt.Sprintf("%0*d", maxSharedBytes, 0) + `"}}}`)
	before := len(c.maps.newer)
	for range 2 {
		if _, err := runtime.Decode(c, large); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.maps.newer) != before {
		t.Error("a large job is kept")
	}
}
