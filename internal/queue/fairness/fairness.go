// Package fairness divides the queue API among its callers. Each class of
// requests has a number of seats, of which a user holds only a few; each user has
// a share of processor time. A flood of one user's requests is queued, slowed down
// or refused, and other users do not notice it (package shares has the mechanisms;
// docs/decisions/0042-each-user-has-a-share-of-the-service.md).
package fairness

import (
	"context"
	"runtime"
	"time"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/shares"
)

// Class is a class of requests that share their seats.
type Class int

// The classes of requests.
const (
	Query     Class = iota // answered from memory
	Search                 // answered from the accounting database
	Operation              // a write
	Watch                  // a watch of the queue or the nodes
	Events                 // a watch of one job, as srun and salloc keep while it runs
	Attach                 // a connection to a job's agent
)

const (
	// operatorWeight is the number of users' shares that an operator has, ownWeight that of
	// one of Berth's own processes.
	operatorWeight = 4
	ownWeight      = 16

	// minCost is the minimum cost of a request, in its user's processor time.
	minCost = 2 * time.Millisecond
	// maxQueryCost and maxOperationCost bound the cost of a request, part of whose
	// time may have passed in waiting for a slow client or for the API server.
	maxQueryCost     = 500 * time.Millisecond
	maxOperationCost = 100 * time.Millisecond

	// maxWait bounds how long a request waits for a seat or for processor time.
	maxWait = 30 * time.Second

	// DefaultRefusalDelay is how long the response to a refused request is delayed.
	DefaultRefusalDelay = 2 * time.Second
)

// Limiter limits what each caller may request. Every process that serves the queue
// API counts for itself. Safe for concurrent use.
type Limiter struct {
	// entrance holds the requests that wait for processor time.
	entrance *shares.Queue
	classes  map[Class]*shares.Queue
	pace     *shares.Pace
	// refusals delays the responses to refused requests: a client that retries at
	// once would cost the API server's time, which all users share.
	refusals *shares.Delay
}

// NewLimiter returns a limiter; refusalDelay 0 means DefaultRefusalDelay.
func NewLimiter(refusalDelay time.Duration) *Limiter {
	const requests = "requests to the queue"
	if refusalDelay == 0 {
		refusalDelay = DefaultRefusalDelay
	}
	return &Limiter{
		entrance: &shares.Queue{What: requests, Places: 2000, PerUser: 64},
		pace:     &shares.Pace{Share: 250 * time.Millisecond, Burst: 2 * time.Second, Least: minCost},
		refusals: &shares.Delay{For: refusalDelay, PerUser: 512},
		classes: map[Class]*shares.Queue{
			// One user's queries never keep more than half of the processors busy.
			Query: {What: requests, Places: 8, PerUser: max(1, min(4, runtime.GOMAXPROCS(0)/2)),
				Waiting: 64, Patience: maxWait},
			Search:    {What: "searches in accounting", Places: 16, PerUser: 1, Waiting: 16, Patience: maxWait},
			Operation: {What: "operations on jobs", Places: 64, PerUser: 4, Waiting: 64, Patience: maxWait},
			Watch:     {What: "watches of the queue", Places: 2000, PerUser: 32},
			Events:    {What: "jobs that a command waits for", Places: 4000, PerUser: 256},
			Attach:    {What: "connections with jobs", Places: 4000, PerUser: 128},
		},
	}
}

// weight returns how many users' shares the caller has.
func weight(c *directory.Caller) int {
	switch {
	case c.Trusted:
		return ownWeight
	case c.Operator:
		return operatorWeight
	}
	return 1
}

// Enter returns when the caller may make a request of the class; leave ends the
// request and charges its cost. The error is a *shares.Refusal unless ctx has
// ended.
func (l *Limiter) Enter(ctx context.Context, c *directory.Caller, class Class) (leave func(), err error) {
	release, err := l.acquire(ctx, c, class)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return func() {
		release()
		l.Charge(c, cost(class, time.Since(start)))
	}, nil
}

func (l *Limiter) acquire(ctx context.Context, c *directory.Caller, class Class) (release func(), err error) {
	leaveEntrance, err := l.entrance.Acquire(ctx, c.Name, weight(c))
	if err != nil {
		return nil, err
	}
	defer leaveEntrance()
	waitCtx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if l.AwaitTime(waitCtx, c) != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &shares.Refusal{What: l.entrance.What, Own: 1, After: 5 * time.Second}
	}
	return l.AcquireSeat(ctx, c, class)
}

// AcquireSeat returns when the caller holds a seat of the class; release returns
// the seat. A watch acquires one for each event that it encodes.
func (l *Limiter) AcquireSeat(ctx context.Context, c *directory.Caller, class Class) (release func(), err error) {
	return l.classes[class].Acquire(ctx, c.Name, weight(c))
}

// AwaitTime returns when the caller has processor time left, or an error when ctx
// ends first or would by its deadline.
func (l *Limiter) AwaitTime(ctx context.Context, c *directory.Caller) error {
	return l.pace.Await(ctx, c.Name, weight(c))
}

// Charge subtracts time from the caller's share.
func (l *Limiter) Charge(c *directory.Caller, used time.Duration) {
	l.pace.Charge(c.Name, weight(c), used)
}

// DelayRefusal returns when the caller may be sent a refusal, or when ctx ends.
func (l *Limiter) DelayRefusal(ctx context.Context, c *directory.Caller) {
	l.refusals.Wait(ctx, c.Name, weight(c))
}

// cost returns what a request of the class costs that lasted for the given time. A
// watch is charged for each event instead.
func cost(class Class, lasted time.Duration) time.Duration {
	switch class {
	case Query, Search:
		return min(lasted, maxQueryCost)
	case Operation:
		return min(lasted, maxOperationCost)
	}
	return minCost
}
