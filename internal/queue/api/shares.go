package api

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/shares"
)

// kind is a kind of request, whose number is bounded for each user and for all
// together.
type kind int

const (
	kindQuery     kind = iota // answered from memory
	kindSearch                // answered from the accounting database
	kindOperation             // writes
	kindWatch                 // follows the queue or the nodes
	kindEvents                // follows one job, as srun and salloc do while it runs
	kindAttach                // a connection with a job's agent
)

// searches are the paths that read the accounting database.
var searches = []string{"/records", "/usage", "/events", "/transactions", "/archives"}

// shareOf is the kind of a request that came by the pattern.
func shareOf(pattern string, r *http.Request) kind {
	switch {
	case slices.ContainsFunc(searches, func(s string) bool { return strings.HasSuffix(pattern, s) }):
		return kindSearch
	case strings.HasSuffix(pattern, "/attach") && r.Header.Get("Upgrade") != "":
		return kindAttach
	case strings.HasSuffix(pattern, "/attach"):
		return kindEvents
	case r.Method != http.MethodGet:
		return kindOperation
	case watching(r.URL.Query()):
		return kindWatch
	}
	return kindQuery
}

const (
	// operatorWeight is how many users' shares an operator has, ownWeight how
	// many one of Berth's own processes has.
	operatorWeight = 4
	ownWeight      = 16

	// leastCost is what a request costs of its user's time, whatever it is.
	leastCost = 2 * time.Millisecond
	// mostOfQuery and mostOfOperation bound what one costs: it may have waited
	// for a client that reads slowly, or for the API server.
	mostOfQuery     = 500 * time.Millisecond
	mostOfOperation = 100 * time.Millisecond
)

// refusalDelay is how long the answer to a refused request is held back.
var refusalDelay = 2 * time.Second

// userShares bounds what each caller may ask for. Each process that serves the
// queue API keeps its own count.
type userShares struct {
	// entrance has the requests that have not begun.
	entrance *shares.Queue
	kinds    map[kind]*shares.Queue
	pace     *shares.Pace
	// refused delays the answer to who is refused: a client that tries again at once
	// costs the API server's time, which is everybody's.
	refused *shares.Delay
}

func newUserShares() *userShares {
	const requests = "requests to the queue"
	return &userShares{
		entrance: &shares.Queue{What: requests, Places: 2000, PerUser: 64},
		pace:     &shares.Pace{Share: 250 * time.Millisecond, Burst: 2 * time.Second, Least: leastCost},
		refused:  &shares.Delay{For: refusalDelay, PerUser: 512},
		kinds: map[kind]*shares.Queue{
			// One user's queries never keep more than half of the processors busy.
			kindQuery: {What: requests, Places: 8, PerUser: max(1, min(4, runtime.GOMAXPROCS(0)/2)),
				Waiting: 64, Patience: patience},
			kindSearch:    {What: "searches in accounting", Places: 16, PerUser: 1, Waiting: 16, Patience: patience},
			kindOperation: {What: "operations on jobs", Places: 64, PerUser: 4, Waiting: 64, Patience: patience},
			kindWatch:     {What: "watches of the queue", Places: 2000, PerUser: 32},
			kindEvents:    {What: "jobs that a command waits for", Places: 4000, PerUser: 256},
			kindAttach:    {What: "connections with jobs", Places: 4000, PerUser: 128},
		},
	}
}

// weightOf is how many users' shares the caller has.
func weightOf(c *directory.Caller) int {
	switch {
	case c.Trusted:
		return ownWeight
	case c.Operator:
		return operatorWeight
	}
	return 1
}

// enter waits for the caller's share, or answers the request with a refusal.
// leave ends the use of it.
func (a *API) enter(w http.ResponseWriter, r *http.Request, c *directory.Caller, k kind) (leave func(), ok bool) {
	release, err := a.budget.await(r.Context(), c, k)
	if err != nil {
		a.beyondShare(w, r, c, err)
		return nil, false
	}
	began := time.Now()
	return func() {
		release()
		a.budget.charge(c, costOf(k, time.Since(began)))
	}, true
}

// await returns when the caller may make a request of the kind. The error is a
// *shares.Refusal unless ctx has ended.
func (s *userShares) await(ctx context.Context, c *directory.Caller, k kind) (release func(), err error) {
	out, err := s.entrance.Acquire(ctx, c.Name, weightOf(c))
	if err != nil {
		return nil, err
	}
	defer out()
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.pace.Await(most, c.Name, weightOf(c)) != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &shares.Refusal{What: s.entrance.What, Own: 1, After: 5 * time.Second}
	}
	return s.kinds[k].Acquire(ctx, c.Name, weightOf(c))
}

// charge takes time off the caller's share.
func (s *userShares) charge(c *directory.Caller, took time.Duration) {
	s.pace.Charge(c.Name, weightOf(c), took)
}

// costOf is what a request of that kind costs that took so long. A stream pays
// for what it sends.
func costOf(k kind, took time.Duration) time.Duration {
	switch k {
	case kindQuery, kindSearch:
		return min(took, mostOfQuery)
	case kindOperation:
		return min(took, mostOfOperation)
	}
	return leastCost
}

// beyondShare answers a request for which there is no room.
func (a *API) beyondShare(w http.ResponseWriter, r *http.Request, c *directory.Caller, err error) {
	var no *shares.Refusal
	if !errors.As(err, &no) {
		return // the client is gone
	}
	a.budget.refused.Wait(r.Context(), c.Name, weightOf(c))
	w.Header().Set("Retry-After", strconv.Itoa(no.Seconds()))
	refuse(w, r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, no.Error())
}
