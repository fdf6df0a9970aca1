package shares_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/queue/shares"
)

// TestRefusalsAreDelayed: a client that retries at once gets a response once in each
// delay, as long as its user has no more than PerUser delayed responses.
func TestRefusalsAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &shares.Delay{For: time.Second, PerUser: 10}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		responses := make([]int, 10)
		var wg sync.WaitGroup
		for i := range responses {
			wg.Go(func() {
				for {
					d.Wait(ctx, "anna", 1)
					if ctx.Err() != nil {
						return
					}
					responses[i]++
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		d.Wait(ctx, "anna", 1) // one more than PerUser
		if took := time.Since(start); took != 0 {
			t.Errorf("the eleventh response waited %v", took)
		}
		d.Wait(ctx, "ben", 1)
		if took := time.Since(start); took != time.Second {
			t.Errorf("another user waited %v", took)
		}
		wg.Wait()
		for i, n := range responses {
			if n != 9 && n != 10 {
				t.Errorf("client %d got %d responses in 10 seconds", i, n)
			}
		}
	})
}
