package api

import (
	"testing"
	"time"
)

// An API server that dies closes all connections at once; one that closes
// another a while after a client's has outlived the client.
func TestOutlived(t *testing.T) {
	ended := time.Now()
	for _, c := range []struct {
		name   string
		closed time.Duration // after the client's; 0: never
		want   bool
	}{
		{"open", 0, true},
		{"with the client's", time.Millisecond, false},
		{"before it was looked at, for want of use", outlives + time.Second, true},
	} {
		l := &link{}
		if c.closed > 0 {
			l.closed.Store(ended.Add(c.closed).UnixNano())
		}
		if got := l.outlived(ended.Add(outlives)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
