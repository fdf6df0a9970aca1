package agentapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The review of a new token costs a request to the API server. These limits keep clients
// of the agents' port from causing many of them.
const (
	// maxToken is more than a token of a service account has.
	maxToken = 16 << 10
	// reviewsAtOnce bounds the reviews that wait for the API server.
	reviewsAtOnce = 8
	// A source may present failuresAtOnce bad tokens in the name of one pod, and
	// one more in each failurePause.
	failuresAtOnce = 4
	failurePause   = 5 * time.Second
	// Tokens of pods that are not in the store are rare: these pods were just deleted.
	strangersAtOnce = 8   // of one source
	strangersRate   = 0.5 // a second
	allStrangers    = 32  // of all sources together
	allRate         = 5
	// maxSources bounds the sources that are followed, and keepLimiter how long: longer than a
	// limiter takes to forget all failures.
	maxSources  = 5000
	keepLimiter = time.Minute
	// clockSkew is how far this clock may be ahead of the API server's.
	clockSkew = 5 * time.Minute
)

var (
	errNotOurs = &failure{http.StatusUnauthorized, "the token is not that of a job's pod"}
	errTooMany = &failure{http.StatusTooManyRequests, "too many unknown tokens were presented; try again later"}
)

// claims are those of a service account token that is bound to a pod
// (Kubernetes, "Managing Service Accounts", schema for service account private
// claims).
type claims struct {
	Issuer     string  `json:"iss"`
	Subject    string  `json:"sub"`
	Expiry     float64 `json:"exp"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// claimedHolder returns the pod that a token claims to belong to, without checking
// its signature, and whether it has expired by this process's clock. ok is false if it
// cannot be the token of a job's pod.
func claimedHolder(token string, now time.Time) (h holder, expired, ok bool) {
	part := strings.Split(token, ".")
	if len(part) != 3 {
		return holder{}, false, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		return holder{}, false, false
	}
	var c claims
	if json.Unmarshal(payload, &c) != nil {
		return holder{}, false, false
	}
	k := &c.Kubernetes
	switch {
	case c.Issuer == "", k.Namespace == "", k.Pod.Name == "", k.Pod.UID == "",
		c.Subject != "system:serviceaccount:"+k.Namespace+":"+v1alpha1.ServiceAccountName:
		return holder{}, false, false
	}
	expired = float64(now.Add(-clockSkew).Unix()) > c.Expiry
	return holder{namespace: k.Namespace, name: k.Pod.Name, uid: k.Pod.UID}, expired, true
}

// sourceOf returns the address that the request comes from, without its port.
func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// reviewLimits bounds the reviews of tokens that turn out bad. Reviews of good
// tokens are bounded by the number of pods. Safe for concurrent use.
type reviewLimits struct {
	now   func() time.Time
	slots chan struct{}

	// failures has a limiter for each source and pod claimed, strangers one for each source.
	failures  *recent[claim, *rate.Limiter]
	strangers *recent[string, *rate.Limiter]
	all       *rate.Limiter
}

func newReviewLimits(now func() time.Time) *reviewLimits {
	return &reviewLimits{
		now: now, slots: make(chan struct{}, reviewsAtOnce),
		failures:  newRecent[claim, *rate.Limiter](keepLimiter, maxSources, now),
		strangers: newRecent[string, *rate.Limiter](keepLimiter, maxSources, now),
		all:       rate.NewLimiter(allRate, allStrangers),
	}
}

// claim is a source and the pod that it claims to be. One source's failures do not
// count against another source, nor against another pod behind the same address.
type claim struct {
	source string
	pod    types.UID
}

func (x *reviewLimits) failuresOf(c claim) *rate.Limiter {
	return x.failures.getOrAdd(c, func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(failurePause), failuresAtOnce)
	})
}

func (x *reviewLimits) strangersOf(source string) *rate.Limiter {
	return x.strangers.getOrAdd(source, func() *rate.Limiter { return rate.NewLimiter(strangersRate, strangersAtOnce) })
}

// enter waits until a token may be reviewed; leave ends the review. known: the pod
// that the token claims exists. The error is a *failure, or that of ctx.
func (x *reviewLimits) enter(ctx context.Context, source string, h holder, known bool) (leave func(), err error) {
	if !known && (!x.strangersOf(source).AllowN(x.now(), 1) ||
		!x.all.AllowN(x.now(), 1)) {
		return nil, errTooMany
	}
	if x.failuresOf(claim{source, h.uid}).TokensAt(x.now()) < 1 {
		return nil, errTooMany
	}
	select {
	case x.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = func() { <-x.slots }
	if x.failuresOf(claim{source, h.uid}).TokensAt(x.now()) < 1 { // others failed meanwhile
		leave()
		return nil, errTooMany
	}
	return leave, nil
}

// failed counts a review of a bad token.
func (x *reviewLimits) failed(source string, h holder) {
	x.failuresOf(claim{source, h.uid}).AllowN(x.now(), 1)
}
