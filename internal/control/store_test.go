package control

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func version(uid string, id int64, rv int) *v1alpha1.BatchJob {
	return &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: strconv.Itoa(rv)},
		Spec:       v1alpha1.BatchJobSpec{JobID: id},
	}
}

func TestStoreKeepsTheNewest(t *testing.T) {
	s := NewStore(jobKey)
	changes := 0
	s.Subscribe(func(_, _ *v1alpha1.BatchJob) { changes++ })
	s.Apply(version("a", 1, 5))
	s.Apply(version("a", 1, 4)) // a watch that is behind our own write
	s.Apply(version("a", 1, 5))
	if j, ok := s.Get("1"); !ok || j.ResourceVersion != "5" || changes != 1 {
		t.Errorf("%v after %d changes", j, changes)
	}
	s.Apply(version("a", 1, 10))
	if j, _ := s.Get("1"); j.ResourceVersion != "10" {
		t.Errorf("versions are compared as text: %v", j)
	}
}

func TestStoreDoesNotRestoreDeletedObjects(t *testing.T) {
	s := NewStore(jobKey)
	s.Apply(version("a", 1, 5))
	s.Remove(version("a", 1, 6), time.Now())
	s.Apply(version("a", 1, 7)) // the response to an earlier write
	if s.Len() != 0 || len(s.ByIndex("1")) != 0 {
		t.Error("a deleted object is stored again")
	}
	s.Apply(version("b", 1, 8))
	if j, ok := s.Get("1"); !ok || j.UID != "b" {
		t.Error("a new object of the same key is missing")
	}
}

func TestStoreFollowsTheKey(t *testing.T) {
	s := NewStore(jobKey)
	s.Apply(version("a", 0, 1)) // not admitted yet: no key
	if _, ok := s.Get("0"); ok || s.Len() != 1 {
		t.Error("an object without a key is indexed")
	}
	s.Apply(version("a", 3, 2))
	if _, ok := s.Get("3"); !ok {
		t.Error("the object cannot be found by its new key")
	}
}

func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	s := NewStore(jobKey)
	s.Subscribe(func(_, _ *v1alpha1.BatchJob) { s.List() })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for rv := range 200 {
				s.Apply(version(strconv.Itoa(rv%7), int64(rv%7+1), i*200+rv))
				s.Get("3")
			}
		})
	}
	wg.Wait()
	if s.Len() != 7 {
		t.Errorf("%d objects", s.Len())
	}
}

func TestAwaitWaitsForTheVersion(t *testing.T) {
	s := NewStore(jobKey)
	done := make(chan error, 1)
	go func() { done <- s.Await(t.Context(), 7) }()
	s.Apply(version("a", 1, 5))
	s.Apply(version("b", 2, 6))
	s.Remove(version("a", 1, 7), time.Now())
	if err := <-done; err != nil || s.Version() != 7 {
		t.Errorf("%v at version %d", err, s.Version())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Await(ctx, 8); err == nil {
		t.Error("no error for a version that did not arrive")
	}
}

// An object that was read is unconfirmed until the watch delivers it or its deletion.
func TestReadObjectsAreUnconfirmed(t *testing.T) {
	a, b, c := version("a", 1, 5), version("b", 2, 6), version("c", 3, 7)
	s := NewStore(jobKey)
	s.Apply(c)
	for _, x := range []*v1alpha1.BatchJob{a, b, version("c", 3, 8)} {
		s.ApplyRead(x)
	}
	unconfirmed := func(x *v1alpha1.BatchJob) bool { return s.AnyUnconfirmed([]*v1alpha1.BatchJob{x}) }
	if !unconfirmed(a) || !unconfirmed(b) || unconfirmed(c) {
		t.Errorf("unconfirmed: a %v, b %v, c %v; want a and b", unconfirmed(a), unconfirmed(b), unconfirmed(c))
	}
	s.Apply(version("a", 1, 5)) // the version that was read
	s.Remove(b, time.Now())
	if unconfirmed(a) || unconfirmed(b) {
		t.Errorf("unconfirmed: a %v, b %v; want neither", unconfirmed(a), unconfirmed(b))
	}
}
