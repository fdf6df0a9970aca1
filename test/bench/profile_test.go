package main

import (
	"reflect"
	"testing"
)

// TestParts: a sample belongs to the part whose function is the innermost one, and garbage
// collection to nobody who allocates.
func TestParts(t *testing.T) {
	const text = `File: berth-local
Type: cpu
-----------+-------------------------------------------------------
      20ms   runtime.mallocgc
             go.etcd.io/bbolt.(*Tx).Commit
             k8s.io/apiserver/pkg/storage/etcd3.(*store).Create
             net/http.(*conn).serve
-----------+-------------------------------------------------------
      10ms   runtime.gcAssistAlloc
             runtime.mallocgc
             github.com/berth-hpc/berth/internal/sched/backfill.(*plan).run
-----------+-------------------------------------------------------
      10ms   sync.(*Pool).Get (inline)
             github.com/berth-hpc/berth/internal/sched/backfill.(*plan).run
             github.com/berth-hpc/berth/internal/sched/app.run
-----------+-------------------------------------------------------
    1500ms   main.main
`
	got := map[string]float64{}
	if err := stacks([]byte(text), func(ms float64, stack []string) { got[partOf(stack)] += ms }); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"store (etcd)": 20, "garbage collection": 10, "planner": 10, otherPart: 1500}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := stacks([]byte("-----------+--\n much   f\n"), func(float64, []string) {}); err == nil {
		t.Error("a text that is no list of samples is accepted")
	}
}

func TestLabel(t *testing.T) {
	const labels = `code="200",component="apiserver",subresource="",verb="PUT"} 7`
	for name, want := range map[string]string{"code": "200", "verb": "PUT", "subresource": "", "resource": ""} {
		if got := label(labels, name); got != want {
			t.Errorf("label %s: %q, want %q", name, got, want)
		}
	}
}
