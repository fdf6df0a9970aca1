package limit

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFastUserWaitsOrIsRefused(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := NewRates("logins", Rate{PerSecond: 2, Burst: 3}, time.Second, func() time.Time { return now })
	want := func(user string, delay time.Duration, refused bool) {
		t.Helper()
		got, err := r.reserve(user)
		if got != delay || (err != nil) != refused {
			t.Errorf("%s: %v, %v; want %v, refused: %v", user, got, err, delay, refused)
		}
	}
	for range 3 {
		want("ann", 0, false)
	}
	want("ann", 500*time.Millisecond, false)
	want("ann", time.Second, false)
	want("ann", 0, true)
	want("ann", 0, true) // a refusal uses nothing up
	want("bob", 0, false)
	now = now.Add(500 * time.Millisecond)
	want("ann", time.Second, false)
	now = now.Add(time.Hour)
	want("ann", 0, false)
	if len(r.users) != 1 {
		t.Errorf("%d users are remembered", len(r.users))
	}
}

func TestWaitingEndsWithTheConnection(t *testing.T) {
	r := NewRates("logins", Rate{PerSecond: 0.001, Burst: 1}, time.Hour, time.Now)
	if err := r.Wait(context.Background(), "ann"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Wait(ctx, "ann"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
