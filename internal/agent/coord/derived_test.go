package coord

import "testing"

// TestDerived checks that the highest exit code counts, and a signal only if
// every exit code was 0.
func TestDerived(t *testing.T) {
	for _, tt := range []struct {
		statuses     []uint32
		code, signal int32
	}{{nil, 0, 0}, {[]uint32{9, 15}, 0, 15}, {[]uint32{15, 3 << 8, 9}, 3, 0}, {[]uint32{9 | 0x80}, 0, 9}} {
		c := &Coordinator{}
		for _, s := range tt.statuses {
			c.recordStatus(s)
		}
		if code, signal := c.Derived(); code != tt.code || signal != tt.signal {
			t.Errorf("%v: %d:%d, want %d:%d", tt.statuses, code, signal, tt.code, tt.signal)
		}
	}
}
