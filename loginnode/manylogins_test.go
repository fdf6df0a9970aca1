package loginnode_test

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/limit"
)

// TestManyLogins lets many clients log in at the same time, each with a session that stays,
// in three rounds. After each round, descriptors and goroutines are those of before, and the
// heap after the last one is that after the first.
func TestManyLogins(t *testing.T) {
	count := 100
	if os.Getenv("BERTH_TEST_FULL") != "" {
		count = 1000
	}
	n := start(t, func(c *loginnode.Config) {
		// One user at one address may not do that otherwise.
		c.MaxUserConnections, c.MaxUserChannels = 2*count, 2*count
		c.Startups = limit.Startups{Begin: 2 * count, Full: 4 * count, PerSource: 2 * count}
		c.LoginRate = limit.Rate{PerSecond: 1000, Burst: count}
		c.SessionRate = c.LoginRate
	})
	round := func() {
		clients := make([]*ssh.Client, count)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				c, err := n.dial("ann", n.ann().key)
				if err != nil {
					t.Error(err)
					return
				}
				s, err := c.NewSession()
				if err == nil {
					_, err = s.StdinPipe()
				}
				if err == nil {
					err = s.Start("exec cat")
				}
				if err != nil {
					t.Error(err)
				}
				clients[i] = c
			})
		}
		wg.Wait()
		if got := n.metric("berth_login_sessions"); got != itoa(count) {
			t.Errorf("%s sessions at the same time, want %d", got, count)
		}
		t.Logf("%d sessions: %d descriptors, %d goroutines, heap %d KiB (server and clients)", count, descriptors(t),
			runtime.NumGoroutine(), heap())
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
		eventually.Holds(t, "the sessions to be over", func() bool {
			return n.metric("berth_login_sessions") == "0" && n.metric("berth_login_connections") == "0"
		})
	}
	round()
	first, files, goroutines := heap(), descriptors(t), runtime.NumGoroutine()
	round()
	round()
	eventually.Holds(t, "descriptors and goroutines to be those of before", func() bool {
		return descriptors(t) <= files+2 && runtime.NumGoroutine() <= goroutines+2
	})
	// A connection is kept until its identity is bound, for a second at most, and the test keeps
	// the lines of the audit log, a kilobyte for each session.
	most := first + first/20 + 512 + uint64(2*count)
	eventually.Holds(t, "the heap to be that after the first round", func() bool { return heap() <= most })
	t.Logf("afterwards: %d descriptors, %d goroutines, heap %d KiB; after the first round %d, %d, %d KiB", descriptors(t),
		runtime.NumGoroutine(), heap(), files, goroutines, first)
}

// heap returns the bytes in use, in KiB.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 10
}
