package server

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func TestQOSAreListedByAge(t *testing.T) {
	var all []*v1alpha1.QOS
	for name, age := range map[string]int64{"fast": 10, "normal": 20, "b": 30, "a": 30} {
		q := &v1alpha1.QOS{}
		q.Name, q.CreationTimestamp = name, metav1.NewTime(time.Unix(age, 0))
		all = append(all, q)
	}
	slices.SortFunc(all, byAge)
	var names []string
	for _, q := range all {
		names = append(names, q.Name)
	}
	if want := []string{"normal", "fast", "a", "b"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}
