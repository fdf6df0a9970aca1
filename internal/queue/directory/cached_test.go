package directory

import (
	"testing"
)

// A change that comes while the value is built is not lost, and one that does
// not come builds nothing.
func TestCachedSeesAChangeDuringItsBuild(t *testing.T) {
	source, builds := 1, 0
	var c cached[int]
	c.build = func() *int {
		builds++
		v := source
		if source == 1 { // as another goroutine may, between the reading and the return
			source = 2
			c.invalidate()
		}
		return &v
	}
	c.get()
	if v := *c.get(); v != 2 {
		t.Errorf("the value is %d, made of what was there before the change", v)
	}
	if c.get(); builds != 2 {
		t.Errorf("%d builds", builds)
	}
}
