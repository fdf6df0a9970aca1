package loginnode

import (
	"testing"
	"time"
)

// A refusal after a fast look-up is as late as one after a slow look-up.
func TestRefusalsTakeTheSameTime(t *testing.T) {
	now := time.Now()
	r := &refusalDelay{least: 20 * time.Millisecond, now: func() time.Time { return now }}
	want := func(took, total time.Duration) {
		t.Helper()
		if got := r.add(took); got != total {
			t.Errorf("a look-up of %v: the refusal takes %v, want %v", took, got, total)
		}
	}
	const ms = time.Millisecond
	want(ms, 20*ms)
	want(19*ms, 20*ms)
	want(45*ms, 80*ms) // a known user, a slow file system
	want(ms, 80*ms)    // an unknown one
	want(50*ms, 80*ms)
	now = now.Add(90 * time.Second)
	want(ms, 40*ms) // the file system is fast again
	now = now.Add(time.Hour)
	want(ms, 20*ms)
	want(time.Minute, 2560*ms) // a source that hangs delays other refusals by no more than this
	want(ms, 2560*ms)
}
