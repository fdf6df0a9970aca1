package directory

import "testing"

// TestCachedSeesAChangeDuringItsBuild: a change while the value is being built is not
// lost, and without a change nothing is built.
func TestCachedSeesAChangeDuringItsBuild(t *testing.T) {
	source, builds := 1, 0
	var c cached[int]
	c.build = func() *int {
		builds++
		v := source
		if source == 1 { // as another goroutine may do after the source was read
			source = 2
			c.invalidate()
		}
		return &v
	}
	c.get()
	if v := *c.get(); v != 2 {
		t.Errorf("the value is %d, from before the change", v)
	}
	if c.get(); builds != 2 {
		t.Errorf("%d builds", builds)
	}
}
