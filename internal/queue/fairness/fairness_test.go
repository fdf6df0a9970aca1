package fairness_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/shares"
)

var (
	anna = &directory.Caller{Name: "anna"}
	ben  = &directory.Caller{Name: "ben"}
	opal = &directory.Caller{Name: "opal", Operator: true}
)

// enterAll enters requests until one is refused, and returns how many were not.
func enterAll(t *testing.T, l *fairness.Limiter, c *directory.Caller, class fairness.Class) int {
	t.Helper()
	for n := 0; ; n++ {
		_, err := l.Enter(t.Context(), c, class)
		var refused *shares.Refusal
		if errors.As(err, &refused) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeats: each user has a number of watches, an operator four times as many, and
// the classes do not share their seats.
func TestSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairness.NewLimiter(0)
		for _, tt := range []struct {
			caller *directory.Caller
			class  fairness.Class
			want   int
		}{
			{anna, fairness.Watch, 32}, {anna, fairness.Events, 256}, {ben, fairness.Watch, 32}, {opal, fairness.Watch,
				128},
		} {
			if n := enterAll(t, l, tt.caller, tt.class); n != tt.want {
				t.Errorf("%s has %d seats of class %d, want %d", tt.caller.Name, n, tt.class, tt.want)
			}
		}
	})
}

// TestLeave: a request that has ended leaves its seat to another.
func TestLeave(t *testing.T) {
	l := fairness.NewLimiter(0)
	leave, err := l.Enter(t.Context(), anna, fairness.Search)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := l.Enter(t.Context(), anna, fairness.Search); err != nil {
		t.Error(err)
	}
}

// TestTime: a user who has used up its processor time waits, and other users do not.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairness.NewLimiter(0)
		for range 10 {
			l.Charge(anna, time.Second)
		}
		start := time.Now()
		if err := l.AwaitTime(t.Context(), ben); err != nil || time.Since(start) != 0 {
			t.Errorf("ben waited %v: %v", time.Since(start), err)
		}
		if err := l.AwaitTime(t.Context(), anna); err != nil || time.Since(start) < time.Second {
			t.Errorf("anna waited %v: %v", time.Since(start), err)
		}
	})
}

// TestEnterEndsWithItsContext: the wait ends when the client disconnects.
func TestEnterEndsWithItsContext(t *testing.T) {
	l := fairness.NewLimiter(0)
	if _, err := l.Enter(t.Context(), anna, fairness.Search); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Enter(ctx, anna, fairness.Search); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestDelayRefusal: the response to a refused request is delayed.
func TestDelayRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairness.NewLimiter(3 * time.Second)
		start := time.Now()
		l.DelayRefusal(t.Context(), anna)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("%v", d)
		}
	})
}
