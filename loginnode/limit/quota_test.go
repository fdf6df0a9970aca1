package limit

import "testing"

func TestQuotas(t *testing.T) {
	q := NewQuotas(2, 3)
	add := func(uid int, name string, fits bool) {
		t.Helper()
		if err := q.AddConnection(uid, name); (err == nil) != fits {
			t.Errorf("%s: %v", name, err)
		}
	}
	add(1, "ann", true)
	add(1, "ann", true)
	add(1, "ann", false)
	add(2, "bob", true)
	add(2, "twin", false)
	c := q.Channels(1)
	for range 3 {
		if !c.Enter() {
			t.Error("one of the first three channels is refused")
		}
	}
	if c.Enter() {
		t.Error("a fourth channel is accepted")
	}
	if q.Channels(3).Enter() {
		t.Error("a channel without a connection is accepted")
	}
	q.RemoveConnection(1)
	q.RemoveConnection(1)
	q.RemoveConnection(2)
	c.Leave()
	if len(q.users) != 1 {
		t.Error("forgotten while channels are open")
	}
	c.Leave()
	c.Leave()
	if len(q.users) != 0 {
		t.Errorf("left: %v", q.users)
	}
}
