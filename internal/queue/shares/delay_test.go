package shares_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/queue/shares"
)

// TestRefusalsAreDelayed: a client that tries again at once is answered as often
// as the delay lets it, up to the number of answers that wait.
func TestRefusalsAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &shares.Delay{For: time.Second, PerUser: 10}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answers := make([]int, 10)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				for {
					d.Wait(ctx, "anna", 1)
					if ctx.Err() != nil {
						return
					}
					answers[i]++
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		d.Wait(ctx, "anna", 1) // one more than wait
		if took := time.Since(began); took != 0 {
			t.Errorf("the eleventh waited %v", took)
		}
		d.Wait(ctx, "ben", 1)
		if took := time.Since(began); took != time.Second {
			t.Errorf("another user waited %v", took)
		}
		wg.Wait()
		for i, n := range answers {
			if n != 9 && n != 10 {
				t.Errorf("client %d was answered %d times in 10 seconds", i, n)
			}
		}
	})
}
