package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
)

// injector is the type of Kind.inject.
type injector = func(context.Context, *cluster.Cluster, *rand.Rand) (string, error)

// random serializes a source that the requests of a proxy share.
type random struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (s *random) hit(chance float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Float64() < chance
}

func (s *random) trouble(of func(*rand.Rand) cluster.Trouble) cluster.Trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of(s.r)
}

// isLease reports whether the request is about the lease of the leader.
func isLease(q cluster.Request) bool { return strings.Contains(q.Path, "/leases/") }

// whose are the clients whose requests fail.
type whose func(*cluster.Cluster) cluster.Proxies

func ofScheduler(c *cluster.Cluster) cluster.Proxies { return c.Proxy }
func ofUsers(c *cluster.Cluster) cluster.Proxies     { return c.UserProxy }

// during makes trouble for some seconds.
func during(ctx context.Context, c *cluster.Cluster, p cluster.Proxies, r *rand.Rand,
	trouble func(cluster.Request) cluster.Trouble) (string, error) {
	p.Set(trouble)
	time.Sleep(between(r, time.Second, 6*time.Second))
	hits := p.Set(nil)
	return fmt.Sprint(hits, " requests"), whole(ctx, c)
}

// requests makes trouble of a part of all requests but watches.
func requests(of whose, what func(*rand.Rand) cluster.Trouble) injector {
	return func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
		s := &random{r: rand.New(rand.NewPCG(r.Uint64(), 3))}
		chance := 0.05 + 0.4*r.Float64()
		return during(ctx, c, of(c), r, func(q cluster.Request) cluster.Trouble {
			if q.Watch || !s.hit(chance) {
				return cluster.Trouble{}
			}
			return s.trouble(what)
		})
	}
}

// writes makes trouble of a part of the writes. Those of the lease are among them.
func writes(of whose, what func(*rand.Rand) cluster.Trouble) injector {
	return func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
		s := &random{r: rand.New(rand.NewPCG(r.Uint64(), 3))}
		chance := 0.05 + 0.4*r.Float64()
		return during(ctx, c, of(c), r, func(q cluster.Request) cluster.Trouble {
			if !q.Write || !s.hit(chance) {
				return cluster.Trouble{}
			}
			return s.trouble(what)
		})
	}
}

func cutWatches(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	n := 1 + r.IntN(5)
	for range n {
		c.Proxy.CutWatches()
		time.Sleep(between(r, 10*time.Millisecond, 800*time.Millisecond))
	}
	return fmt.Sprint(n, " times"), whole(ctx, c)
}

// watchesGone: as after a compaction, a client has to list again.
func watchesGone(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	s := &random{r: rand.New(rand.NewPCG(r.Uint64(), 3))}
	c.Proxy.Set(func(q cluster.Request) cluster.Trouble {
		return cluster.Trouble{Gone: q.Watch && s.hit(0.7)}
	})
	c.Proxy.CutWatches()
	time.Sleep(between(r, 500*time.Millisecond, 3*time.Second))
	hits := c.Proxy.Set(nil)
	return fmt.Sprint(hits, " watches"), whole(ctx, c)
}

// silence lets requests hang, the lease's too: a network that drops everything.
func silence(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	leases := r.IntN(2) == 0
	c.Count(cluster.Cut, "between the scheduler and the API server")
	c.Proxy.CutWatches()
	return during(ctx, c, c.Proxy, r, func(q cluster.Request) cluster.Trouble {
		if !leases && isLease(q) {
			return cluster.Trouble{}
		}
		return cluster.Trouble{Delay: 20 * time.Second, Reset: true}
	})
}
