package api

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ConfigMap in which every API server publishes how its front proxy is
// known.
const (
	authNamespace = "kube-system"
	authName      = "extension-apiserver-authentication"
)

// FrontProxy authenticates requests that come through the API server: the
// connection shows the front proxy's client certificate, and headers say for
// whom it asks. Nobody else's word is taken. Safe for concurrent use.
type FrontProxy struct {
	Client client.Reader
	Now    func() time.Time
	// Peer, if set, tells whether the certificates are those of another of
	// Berth's own API roles, which has authenticated the caller itself and
	// passes on the headers.
	Peer func([]*x509.Certificate) bool

	mu      sync.Mutex
	trust   *trust
	loaded  time.Time
	checked map[[sha256.Size]byte]time.Time // good certificates, until when
}

// trust is what the ConfigMap says.
type trust struct {
	roots *x509.CertPool
	names []string // common names allowed; empty: all
	user  []string // headers
	group []string
}

const (
	reloadAfter = time.Minute
	retryAfter  = time.Second
	maxChecked  = 100
)

var (
	errNoCertificate = errors.New("this server takes requests through the API server only")
	errNoUser        = errors.New("the front proxy names no user")
)

// Check tells whether the connection shows the front proxy's certificate,
// whoever it asks for. The error is as Identify's.
func (f *FrontProxy) Check(r *http.Request) error {
	_, err := f.check(r)
	return err
}

// check returns the trust that the connection's certificate satisfies.
func (f *FrontProxy) check(r *http.Request) (*trust, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, errNoCertificate
	}
	t, err := f.current(r.Context(), false)
	if err != nil {
		return nil, err
	}
	if f.verify(t, r.TLS.PeerCertificates) == nil || f.Peer != nil && f.Peer(r.TLS.PeerCertificates) {
		return t, nil
	}
	// The authority may have changed since it was read.
	if t, err = f.current(r.Context(), true); err != nil {
		return nil, err
	}
	if err := f.verify(t, r.TLS.PeerCertificates); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return t, nil
}

// Identify tells who makes the request. The error is for a 401, unless it
// wraps ErrNotReady.
func (f *FrontProxy) Identify(r *http.Request) (user string, groups []string, err error) {
	t, err := f.check(r)
	if err != nil {
		return "", nil, err
	}
	for _, h := range t.user {
		if user = r.Header.Get(h); user != "" {
			break
		}
	}
	if user == "" {
		return "", nil, errNoUser
	}
	for _, h := range t.group {
		groups = append(groups, r.Header.Values(h)...)
	}
	return user, groups, nil
}

// ErrNotReady means that the front proxy's authority is not known yet.
var ErrNotReady = errors.New("the front proxy's authority is not known yet")

// current is the trust in force; it is read again now and then, and with
// again set unless that was a moment ago.
func (f *FrontProxy) current(ctx context.Context, again bool) (*trust, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	age := f.Now().Sub(f.loaded)
	if f.trust != nil && age < reloadAfter && (!again || age < retryAfter) {
		return f.trust, nil
	}
	if f.trust == nil && age < retryAfter {
		return nil, ErrNotReady
	}
	f.loaded = f.Now()
	t, err := f.load(ctx)
	if err != nil {
		if f.trust != nil {
			return f.trust, nil // what was good a minute ago
		}
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	f.trust, f.checked = t, nil
	return t, nil
}

func (f *FrontProxy) load(ctx context.Context) (*trust, error) {
	var m corev1.ConfigMap
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: authNamespace, Name: authName}, &m); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", authNamespace, authName, err)
	}
	t := &trust{roots: x509.NewCertPool()}
	if !t.roots.AppendCertsFromPEM([]byte(m.Data["requestheader-client-ca-file"])) {
		return nil, fmt.Errorf("ConfigMap %s/%s names no authority for the front proxy (kube-apiserver --requestheader-client-ca-file)", authNamespace, authName)
	}
	for key, into := range map[string]*[]string{
		"requestheader-allowed-names":    &t.names,
		"requestheader-username-headers": &t.user,
		"requestheader-group-headers":    &t.group,
	} {
		if text := m.Data[key]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return nil, fmt.Errorf("ConfigMap %s/%s, %s: %w", authNamespace, authName, key, err)
			}
		}
	}
	return t, nil
}

// verify checks the certificate against the trust; good ones are remembered
// for a while, since every request of a connection shows the same.
func (f *FrontProxy) verify(t *trust, chain []*x509.Certificate) error {
	leaf, now := chain[0], f.Now()
	sum := sha256.Sum256(leaf.Raw)
	f.mu.Lock()
	until, ok := f.checked[sum]
	same := f.trust == t
	f.mu.Unlock()
	if ok && same && now.Before(until) {
		return nil
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: t.roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	if len(t.names) > 0 && !slices.Contains(t.names, leaf.Subject.CommonName) {
		return fmt.Errorf("%q is not the front proxy", leaf.Subject.CommonName)
	}
	f.remember(t, sum, minTime(now.Add(reloadAfter), leaf.NotAfter))
	return nil
}

func (f *FrontProxy) remember(t *trust, sum [sha256.Size]byte, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trust != t {
		return
	}
	if f.checked == nil || len(f.checked) >= maxChecked {
		f.checked = map[[sha256.Size]byte]time.Time{}
	}
	f.checked[sum] = until
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
