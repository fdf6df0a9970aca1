package agentapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Keys in a reviewed token's extra fields (Kubernetes' bound tokens).
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// holder is the pod a token belongs to.
type holder struct {
	namespace, name string
	uid             types.UID
}

// Results are cached for a short time: an agent that polls must not cost a review each
// time, and a revoked token must not stay good for long. Good and bad tokens have caches
// of their own, so that a flood of bad ones evicts no good one.
const (
	keepGood = time.Minute
	keepBad  = 5 * time.Second
	maxGood  = 5000
	maxBad   = 500
)

// tokens asks the API server which pod a token belongs to. Safe for concurrent use.
type tokens struct {
	client client.Client
	now    func() time.Time
	limits *reviewLimits
	// known reports whether the pod exists.
	known func(holder) bool

	good, bad *recent[[sha256.Size]byte, verdict] // by a token's SHA-256
}

type verdict struct {
	holder holder
	err    error
	until  time.Time
}

func newTokens(c client.Client, now func() time.Time, known func(holder) bool) *tokens {
	return &tokens{
		client: c, now: now, limits: newReviewLimits(now), known: known,
		good: newRecent[[sha256.Size]byte, verdict](keepGood, maxGood, now),
		bad:  newRecent[[sha256.Size]byte, verdict](keepBad, maxBad, now),
	}
}

// holder returns the pod whose token the request has. The error is a *failure if the
// token is invalid, or if too many tokens wait for a review.
func (t *tokens) holder(r *http.Request) (holder, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return holder{}, &failure{http.StatusUnauthorized, "a pod's token is needed"}
	}
	if len(token) > maxToken {
		return holder{}, errNotOurs
	}
	sum := sha256.Sum256([]byte(token))
	if v, ok := t.kept(sum); ok {
		return v.holder, v.err
	}
	claimed, expired, ok := claimedHolder(token, t.now())
	known := ok && t.known(claimed)
	// For a pod that exists, the API server decides by its own clock whether the token has
	// expired: this one may be wrong, and all agents would be refused.
	if !ok || expired && !known {
		return holder{}, errNotOurs // whatever it is: no review is needed
	}
	leave, err := t.limits.enter(r.Context(), sourceOf(r), claimed, known)
	if err != nil {
		return holder{}, err
	}
	defer leave()
	if v, ok := t.kept(sum); ok { // it was reviewed while this request waited
		return v.holder, v.err
	}
	h, err := t.review(r.Context(), token)
	if _, final := errors.AsType[*failure](err); err == nil || final {
		t.keep(sum, verdict{holder: h, err: err})
	}
	if err != nil {
		t.limits.failed(sourceOf(r), claimed)
	}
	return h, err
}

// kept returns the result of a review a moment ago.
func (t *tokens) kept(sum [sha256.Size]byte) (v verdict, ok bool) {
	for _, c := range []*recent[[sha256.Size]byte, verdict]{t.good, t.bad} {
		if v, ok = c.get(sum); ok && t.now().Before(v.until) {
			return v, true
		}
	}
	return verdict{}, false
}

func (t *tokens) keep(sum [sha256.Size]byte, v verdict) {
	if v.err != nil {
		v.until = t.now().Add(keepBad)
		t.good.remove(sum)
		t.bad.add(sum, v)
		return
	}
	v.until = t.now().Add(keepGood)
	t.good.add(sum, v)
}

func (t *tokens) review(ctx context.Context, token string) (holder, error) {
	review := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token}}
	if err := t.client.Create(ctx, review); err != nil {
		return holder{}, fmt.Errorf("token review: %w", err)
	}
	user := review.Status.User
	account, ok := strings.CutPrefix(user.Username, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	pod, uid := user.Extra[extraPodName], user.Extra[extraPodUID]
	if !review.Status.Authenticated || !ok || name != v1alpha1.ServiceAccountName || len(pod) != 1 || len(uid) != 1 {
		return holder{}, errNotOurs
	}
	return holder{namespace: namespace, name: pod[0], uid: types.UID(uid[0])}, nil
}

// pod returns the holder's pod, from the store or else from the API server.
func (s *Server) pod(ctx context.Context, h holder) (*corev1.Pod, error) {
	if p, ok := s.Cluster.Pods.ByUID(h.uid); ok && p.Namespace == h.namespace && p.Name == h.name {
		return p, nil
	}
	p := &corev1.Pod{}
	err := s.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.name}, p)
	if apierrors.IsNotFound(err) || err == nil && p.UID != h.uid {
		return nil, &failure{http.StatusForbidden, "the token's pod is gone"}
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", h.namespace, h.name, err)
	}
	return p, nil
}
