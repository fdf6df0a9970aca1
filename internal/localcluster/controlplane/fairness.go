package controlplane

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	requestinfo "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/shares"
	"github.com/berth-hpc/berth/internal/wire"
)

// fairness prevents the requests of one user from delaying others, as an API server's
// Priority and Fairness does, which has queues for everybody and would be too costly
// for a cluster on one machine. Administrators and the cluster's own parts are not
// limited. Safe for concurrent use.
type fairness struct {
	requests, lists, watches *shares.Queue
	pace                     *shares.Pace
}

// userTimeout is how long a user's request waits for its turn.
const userTimeout = 30 * time.Second

func newFairness() *fairness {
	return &fairness{
		requests: &shares.Queue{
			What: "requests to the API server", Places: 64, PerUser: 2 * runtime.GOMAXPROCS(0), Waiting: 100,
			Patience: userTimeout,
		},
		lists:   &shares.Queue{What: "lists of jobs", Places: 2, PerUser: 1, Waiting: 16, Patience: userTimeout},
		watches: &shares.Queue{What: "watches of jobs", Places: 2000, PerUser: 16},
		// For lists only.
		pace: &shares.Pace{Share: 250 * time.Millisecond, Burst: 2 * time.Second, Least: time.Millisecond},
	}
}

// chain returns the API server's chain of handlers with f in it, after authentication
// and the parsing of the request.
func (f *fairness) chain(
	build func(http.Handler, *genericapiserver.Config) http.Handler,
) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return build(f.handler(api), c)
	}
}

func (f *fairness) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := requestinfo.UserFrom(r.Context())
		what, _ := requestinfo.RequestInfoFrom(r.Context())
		// The queue API has its own limits, and streams.
		if who == nil || what == nil || what.APIGroup == wire.QueueGroup || !limited(who) {
			next.ServeHTTP(w, r)
			return
		}
		leave, err := f.enter(r.Context(), who.GetName(), what)
		if err != nil {
			refuse(w, err)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// limited reports whether the user is neither an administrator nor a part of Kubernetes
// or Berth.
func limited(who user.Info) bool {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return false
	}
	name, system := strings.CutPrefix(who.GetName(), "system:")
	return !system || strings.HasPrefix(name, "serviceaccount:") &&
		strings.HasSuffix(name, ":"+v1alpha1.ServiceAccountName)
}

// enter waits for the user's share. The error is a *shares.Refusal unless ctx has
// ended.
func (f *fairness) enter(ctx context.Context, name string, what *requestinfo.RequestInfo) (leave func(), err error) {
	switch what.Verb {
	case "watch":
		return f.watches.Acquire(ctx, name, 1)
	case "list", "deletecollection":
		release, err := f.lists.Acquire(ctx, name, 1)
		if err != nil {
			return nil, err
		}
		if err := f.pace.Await(ctx, name, 1); err != nil {
			release()
			return nil, err
		}
		began := time.Now()
		return func() {
			release()
			f.pace.Charge(name, 1, time.Since(began))
		}, nil
	}
	return f.requests.Acquire(ctx, name, 1)
}

func refuse(w http.ResponseWriter, err error) {
	var no *shares.Refusal
	if !errors.As(err, &no) {
		return // the client is gone
	}
	w.Header().Set("Retry-After", strconv.Itoa(no.Seconds()))
	http.Error(w, no.Error(), http.StatusTooManyRequests)
}
