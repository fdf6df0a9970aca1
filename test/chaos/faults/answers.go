package faults

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
)

// watchShare is the share of the watches that are altered: they are few, and last for minutes.
const watchShare = 0.5

// Alter lets a share of all answers to the schedulers and to users' commands fail from now on,
// chosen by the seed, until stop is called. Each altered answer counts as a fault.
func Alter(c *cluster.Cluster, seed uint64, share float64) (stop func()) {
	for i, of := range []cluster.Proxies{c.Proxy, c.UserProxy} {
		s := &random{r: rand.New(rand.NewPCG(seed, 100+uint64(i)))}
		of.Alter(func(q cluster.Request) cluster.Trouble {
			switch {
			case q.Watch && s.hit(watchShare):
				return s.trouble(disturbWatch)
			case !q.Watch && s.hit(share):
				return s.trouble(func(r *rand.Rand) cluster.Trouble { return disturb(q, r) })
			}
			return cluster.Trouble{}
		})
	}
	return func() {
		c.Proxy.Alter(nil)
		c.UserProxy.Alter(nil)
	}
}

// disturb returns what happens to one request. The API server refuses only changes of what
// exists with a conflict.
func disturb(q cluster.Request, r *rand.Rand) cluster.Trouble {
	n := r.IntN(10)
	switch {
	case n < 4 && q.Write:
		return loseAnswer(r)
	case n < 6 && (q.Method == http.MethodPut || q.Method == http.MethodPatch || q.Method == http.MethodDelete):
		return reject(r)
	case n < 8:
		return refuse(r)
	}
	return cluster.Trouble{Delay: between(r, 100*time.Millisecond, 1500*time.Millisecond)}
}

// disturbWatch returns what happens to one watch.
func disturbWatch(r *rand.Rand) cluster.Trouble {
	switch n := r.IntN(10); {
	case n < 1:
		return cluster.Trouble{Gone: true}
	case n < 6:
		return cluster.Trouble{CutAfter: between(r, 100*time.Millisecond, 20*time.Second)}
	}
	return cluster.Trouble{StallAfter: between(r, 0, 20*time.Second), Stall: between(r, time.Second, 5*time.Second)}
}
