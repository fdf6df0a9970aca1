package shares_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/queue/shares"
)

func acquire(t *testing.T, q *shares.Queue, user string) (release func()) {
	t.Helper()
	release, err := q.Acquire(t.Context(), user, 1)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	return release
}

// TestPlacesGoToUsersInTurns: a flood of one user's requests leaves places to other
// users, who get them in turns when all are taken, not in the order of requests.
func TestPlacesGoToUsersInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &shares.Queue{What: "lists", Places: 2, PerUser: 1, Waiting: 10, Patience: time.Minute}
		first := acquire(t, q, "flood")
		var mu sync.Mutex
		waits := map[string][]time.Duration{} // those of each user's requests
		wait := func(user string) {
			go func() {
				start := time.Now()
				release, err := q.Acquire(context.Background(), user, 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				waits[user] = append(waits[user], time.Since(start))
				mu.Unlock()
				time.Sleep(time.Second)
				release()
			}()
			synctest.Wait()
		}
		for range 5 {
			wait("flood")
		}
		release := acquire(t, q, "anna") // without waiting, in spite of the flood
		wait("ben")
		wait("cleo")
		release()
		first()
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[string][]time.Duration{
			"ben":   {0},
			"cleo":  {time.Second}, // one request of each other user
			"flood": {0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second},
		}
		if !maps.EqualFunc(waits, want, slices.Equal) {
			t.Errorf("requests waited %v, want %v", waits, want)
		}
	})
}

func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &shares.Queue{What: "watches of the queue", Places: 3, PerUser: 2}
		a, b := acquire(t, q, "anna"), acquire(t, q, "anna")
		var refused *shares.Refusal
		if _, err := q.Acquire(t.Context(), "anna", 1); !errors.As(err, &refused) || refused.Own != 2 {
			t.Errorf("the third of one user: %v", err)
		}
		c := acquire(t, q, "ben")
		if _, err := q.Acquire(t.Context(), "cleo", 1); !errors.As(err, &refused) || refused.Own != 0 {
			t.Errorf("the fourth of all: %v", err)
		}
		a()
		a() // has no effect
		d := acquire(t, q, "cleo")
		if _, err := q.Acquire(t.Context(), "ben", 1); err == nil {
			t.Error("a place was returned twice")
		}
		b()
		c()
		d()
	})
}

// TestWaitingEnds: a request that no longer waits gets no place.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &shares.Queue{What: "lists", Places: 1, PerUser: 1, Waiting: 2, Patience: time.Second}
		release := acquire(t, q, "anna")
		var refused *shares.Refusal
		if _, err := q.Acquire(t.Context(), "ben", 1); !errors.As(err, &refused) {
			t.Errorf("after its patience: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := q.Acquire(ctx, "ben", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that ended: %v", err)
		}
		release()
		acquire(t, q, "cleo")()
		acquire(t, q, "anna")()
	})
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &shares.Pace{Share: 250 * time.Millisecond, Burst: time.Second, Least: time.Millisecond}
		await := func(user string, weight int) time.Duration {
			start := time.Now()
			if err := p.Await(t.Context(), user, weight); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		for range 3 {
			p.Charge("flood", 1, time.Second)
		}
		if d := await("anna", 1); d != 0 {
			t.Errorf("another user waited %v", d)
		}
		if d := await("flood", 1); d < 7*time.Second || d > 9*time.Second {
			t.Errorf("a user who owes two seconds, with a share of a quarter, waited %v", d)
		}
		p.Charge("root", 4, 3*time.Second)
		if d := await("root", 4); d != 0 {
			t.Errorf("an operator waited %v", d)
		}
	})
}
