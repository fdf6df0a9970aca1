package api

import (
	"errors"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/shares"
)

// Handler serves a request of an authenticated caller.
type Handler func(http.ResponseWriter, *http.Request, *directory.Caller)

// chain returns the handlers that a request of the route passes, the outermost
// first:
//
//	authenticate   finds out who the caller is (401 Unauthorized), and lets the leader serve
//	               a caller who is no user
//	limitQuery     refuses a query that is too long, before it is parsed (400)
//	forward        lets the leader serve the request, if only the leader can
//	limitCaller    waits for the caller's share of the service (429)
//	count          counts the request for sdiag
//	catchUp        waits until this process has seen what the leader has seen
//	route.Handler  serves the request
func (a *API) chain(route Route) http.Handler {
	if route.LeaderOnly && a.Leader != nil {
		return a.authenticate(limitQuery(a.forward))
	}
	return a.authenticate(limitQuery(a.limitCaller(route.classify, a.count(route.Pattern, a.catchUp(route.Handler)))))
}

func (a *API) authenticate(next Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, groups, err := a.Proxy.Authenticate(r)
		if err == nil {
			if a.Contact != nil {
				a.Contact(user, groups, func(key string) []string { return a.Proxy.Extra(r, key) })
			}
			c := a.Directory.Resolve(user, groups)
			if a.Leader != nil && c.User == nil && !c.Operator {
				a.Leader.Forward(w, r) // which may make a User of the caller
				return
			}
			next(w, r, c)
			return
		}
		w.Header().Set("Connection", "close") // an unauthenticated client keeps no connection
		if errors.Is(err, frontproxy.ErrNotReady) {
			response.Unavailable(w, r, err)
			return
		}
		response.Error(w, r, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, err.Error())
	})
}

func limitQuery(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
		if err := query.CheckSize(r.URL.RawQuery); err != nil {
			response.BadRequest(w, r, err)
			return
		}
		next(w, r, c)
	}
}

func (a *API) forward(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	a.Leader.Forward(w, r)
}

func (a *API) limitCaller(classify func(*http.Request) fairness.Class, next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
		leave, err := a.limiter.Enter(r.Context(), c, classify(r))
		if err != nil {
			a.refuseShare(w, r, c, err)
			return
		}
		defer leave()
		next(w, r, c)
	}
}

// refuseShare responds to a request that is beyond the caller's share.
func (a *API) refuseShare(w http.ResponseWriter, r *http.Request, c *directory.Caller, err error) {
	var beyond *shares.Refusal
	if !errors.As(err, &beyond) {
		return // the client is gone
	}
	a.limiter.DelayRefusal(r.Context(), c)
	w.Header().Set("Retry-After", strconv.Itoa(beyond.Seconds()))
	response.Error(w, r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, beyond.Error())
}

func (a *API) count(pattern string, next Handler) Handler {
	name := requestName(pattern)
	return func(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
		defer a.counters.StartRequest(name, c)()
		next(w, r, c)
	}
}

func (a *API) catchUp(next Handler) Handler {
	if a.Leader == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
		a.Leader.CatchUp(r.Context())
		next(w, r, c)
	}
}
