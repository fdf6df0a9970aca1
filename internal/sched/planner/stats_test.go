package planner

import (
	"testing"
	"testing/synctest"
	"time"
)

// How long a cycle took does not depend on the clock that decisions are made by.
func TestACyclesDurationIsMeasuredByOneClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
		b.submit(1, 1)
		defer b.run()()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := b.Stats(); s.Cycles == 0 || s.Max > time.Minute.Microseconds() {
			t.Errorf("%d cycles, of which the longest took %d us", s.Cycles, s.Max)
		}
	})
}
