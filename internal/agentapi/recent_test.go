package agentapi

import (
	"testing"
	"time"
)

func TestRecent(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRecent[string, int](time.Minute, 3, func() time.Time { return now })
	expect := func(key string, want int, known bool) {
		t.Helper()
		if v, ok := r.get(key); ok != known || v != want {
			t.Errorf("%s: %d %v, want %d %v", key, v, ok, want, known)
		}
	}
	r.add("a", 1)
	r.add("b", 2)
	now = now.Add(70 * time.Second)
	expect("a", 1, true)
	now = now.Add(70 * time.Second) // a was used meanwhile
	expect("a", 1, true)
	expect("b", 0, false)
	now = now.Add(-time.Hour)
	expect("a", 1, true)
	now = now.Add(3 * time.Minute)
	expect("a", 0, false)
	if v := r.getOrAdd("c", func() int { return 3 }); v != 3 {
		t.Error(v)
	}
	if v := r.getOrAdd("c", func() int { return 4 }); v != 3 {
		t.Error(v)
	}
	r.remove("c")
	expect("c", 0, false)
	for i := range 100 {
		r.add(string(rune('A'+i)), i)
		if n := len(r.young) + len(r.old); n > 6 {
			t.Fatalf("%d entries", n)
		}
	}
	expect(string(rune('A'+99)), 99, true)
}
