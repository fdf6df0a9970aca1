package agentapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
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

// Answers are kept shortly: an agent that polls must not cost a review each
// time, and a token that was revoked must not be good for long.
const (
	keepGood = time.Minute
	keepBad  = 5 * time.Second
	maxKept  = 10000
)

// tokens asks the API server whose a token is.
type tokens struct {
	client client.Client
	now    func() time.Time

	mu   sync.Mutex
	kept map[[sha256.Size]byte]verdict
}

type verdict struct {
	holder holder
	err    error
	until  time.Time
}

func newTokens(c client.Client, now func() time.Time) *tokens {
	return &tokens{client: c, now: now, kept: map[[sha256.Size]byte]verdict{}}
}

// holder tells whose token the request carries. The error is a *failure when
// the token is not good.
func (t *tokens) holder(r *http.Request) (holder, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return holder{}, &failure{http.StatusUnauthorized, "a pod's token is needed"}
	}
	sum := sha256.Sum256([]byte(token))
	t.mu.Lock()
	v, ok := t.kept[sum]
	t.mu.Unlock()
	if ok && t.now().Before(v.until) {
		return v.holder, v.err
	}
	h, err := t.review(r.Context(), token)
	if _, final := errors.AsType[*failure](err); err == nil || final {
		t.keep(sum, verdict{holder: h, err: err})
	}
	return h, err
}

func (t *tokens) keep(sum [sha256.Size]byte, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.kept) >= maxKept {
		for k, old := range t.kept {
			if !now.Before(old.until) || len(t.kept) >= maxKept {
				delete(t.kept, k)
			}
		}
	}
	if v.until = now.Add(keepGood); v.err != nil {
		v.until = now.Add(keepBad)
	}
	t.kept[sum] = v
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
		return holder{}, &failure{http.StatusUnauthorized, "the token is not that of a job's pod"}
	}
	return holder{namespace: namespace, name: pod[0], uid: types.UID(uid[0])}, nil
}

// pod finds the holder's pod: among those known, else by asking.
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
