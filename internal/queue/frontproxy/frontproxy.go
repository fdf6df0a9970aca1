// Package frontproxy authenticates requests that the API server's front proxy
// forwards (request-header authentication). The connection presents the client
// certificate of the front proxy, and headers name the user. The authority and
// the headers come from the ConfigMap in which every API server publishes them.
//
// docs/decisions/0048-front-proxy-authentication-of-our-own.md says why this is
// not the request-header authenticator of k8s.io/apiserver.
package frontproxy

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ConfigMap in which API servers publish the configuration of their front
// proxy.
const (
	configNamespace = "kube-system"
	configName      = "extension-apiserver-authentication"
)

// ErrNotReady means that the configuration of the front proxy has not been read
// yet.
var ErrNotReady = errors.New("the front proxy's authority is not known yet")

var (
	errNoCertificate = errors.New("this server accepts requests through the API server only")
	errNoUser        = errors.New("the front proxy names no user")
)

// Authenticator authenticates requests. Safe for concurrent use.
type Authenticator struct {
	Client client.Reader
	Now    func() time.Time
	// IsPeer, if set, reports whether the certificates belong to another of Berth's
	// own API roles, which has authenticated the caller and forwards the headers.
	IsPeer func([]*x509.Certificate) bool

	mu       sync.Mutex
	config   *config
	loaded   time.Time                       // when config was loaded, or when that failed
	verified map[[sha256.Size]byte]time.Time // until when a certificate need not be verified again
}

const (
	reloadAfter = time.Minute // the age at which the configuration is read again
	retryAfter  = time.Second // the minimum time between two attempts to read it
	maxVerified = 100         // certificates that are remembered
)

// AuthenticateConnection returns nil if the connection of r presents the
// certificate of the front proxy, whatever user r is for. The error is as
// Authenticate's.
func (a *Authenticator) AuthenticateConnection(r *http.Request) error {
	_, err := a.configFor(r)
	return err
}

// Authenticate returns the user and groups that the front proxy names. The error
// is for a 401 (Unauthorized), unless it wraps ErrNotReady.
func (a *Authenticator) Authenticate(r *http.Request) (user string, groups []string, err error) {
	c, err := a.configFor(r)
	if err != nil {
		return "", nil, err
	}
	for _, name := range c.userHeaders {
		if user = r.Header.Get(name); user != "" {
			break
		}
	}
	if user == "" {
		return "", nil, errNoUser
	}
	for _, name := range c.groupHeaders {
		groups = append(groups, r.Header.Values(name)...)
	}
	return user, groups, nil
}

// Extra returns the values of an extra attribute of the user of a request that Authenticate has
// accepted.
func (a *Authenticator) Extra(r *http.Request, key string) []string {
	a.mu.Lock()
	c := a.config
	a.mu.Unlock()
	if c == nil {
		return nil
	}
	var out []string
	for header, values := range r.Header {
		for _, prefix := range c.extraPrefixes {
			if len(header) <= len(prefix) || !strings.EqualFold(header[:len(prefix)], prefix) {
				continue
			}
			name := strings.ToLower(header[len(prefix):]) // as the API server reads it
			if decoded, err := url.PathUnescape(name); err == nil {
				name = decoded
			}
			if name == key {
				out = append(out, values...)
			}
		}
	}
	return out
}

// FromPeer reports whether another of Berth's API roles forwarded the request.
func (a *Authenticator) FromPeer(r *http.Request) bool {
	return r.TLS != nil && a.IsPeer != nil && a.IsPeer(r.TLS.PeerCertificates)
}

// configFor returns the configuration that the certificate of the request's
// connection satisfies.
func (a *Authenticator) configFor(r *http.Request) (*config, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, errNoCertificate
	}
	c, err := a.current(r.Context(), reloadAfter)
	if err != nil {
		return nil, err
	}
	if a.verify(c, r.TLS.PeerCertificates) == nil || a.FromPeer(r) {
		return c, nil
	}
	// The authority may have been replaced since the configuration was read.
	if c, err = a.current(r.Context(), retryAfter); err != nil {
		return nil, err
	}
	if err := a.verify(c, r.TLS.PeerCertificates); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return c, nil
}

// current returns the configuration, which is read again if it is older than
// maxAge. If that fails, the previous configuration stays in force.
func (a *Authenticator) current(ctx context.Context, maxAge time.Duration) (*config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	age := a.Now().Sub(a.loaded)
	if a.config != nil && age < maxAge {
		return a.config, nil
	}
	if a.config == nil && age < retryAfter {
		return nil, ErrNotReady
	}
	a.loaded = a.Now()
	c, err := loadConfig(ctx, a.Client)
	switch {
	case err == nil:
		a.config, a.verified = c, nil
	case a.config == nil:
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return a.config, nil
}

// verify returns nil if the certificates are those of the front proxy. The result
// is remembered for a while: every request of a connection presents the same.
func (a *Authenticator) verify(c *config, chain []*x509.Certificate) error {
	leaf, now := chain[0], a.Now()
	digest := sha256.Sum256(leaf.Raw)
	if a.isVerified(c, digest, now) {
		return nil
	}
	if err := c.verify(leaf, chain[1:], now); err != nil {
		return err
	}
	until := now.Add(reloadAfter)
	if leaf.NotAfter.Before(until) {
		until = leaf.NotAfter
	}
	a.remember(c, digest, until)
	return nil
}

func (a *Authenticator) isVerified(c *config, digest [sha256.Size]byte, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.verified[digest]
	return ok && a.config == c && now.Before(until)
}

func (a *Authenticator) remember(c *config, digest [sha256.Size]byte, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config != c {
		return
	}
	if a.verified == nil || len(a.verified) >= maxVerified {
		a.verified = map[[sha256.Size]byte]time.Time{}
	}
	a.verified[digest] = until
}

// config is the content of the ConfigMap.
type config struct {
	roots        *x509.CertPool
	allowedNames []string // common names; empty: every name
	userHeaders  []string
	groupHeaders []string
	// extraPrefixes precede the names of extra attributes.
	extraPrefixes []string
}

func loadConfig(ctx context.Context, reader client.Reader) (*config, error) {
	var m corev1.ConfigMap
	key := client.ObjectKey{Namespace: configNamespace, Name: configName}
	if err := reader.Get(ctx, key, &m); err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	c := &config{roots: x509.NewCertPool()}
	if !c.roots.AppendCertsFromPEM([]byte(m.Data["requestheader-client-ca-file"])) {
		return nil, fmt.Errorf(
			"ConfigMap %s names no authority for the front proxy (kube-apiserver --requestheader-client-ca-file)", key,
		)
	}
	for name, field := range map[string]*[]string{
		"requestheader-allowed-names":    &c.allowedNames,
		"requestheader-username-headers": &c.userHeaders,
		"requestheader-group-headers":    &c.groupHeaders,

		"requestheader-extra-headers-prefix": &c.extraPrefixes,
	} {
		if text := m.Data[name]; text != "" {
			if err := json.Unmarshal([]byte(text), field); err != nil {
				return nil, fmt.Errorf("ConfigMap %s, %s: %w", key, name, err)
			}
		}
	}
	return c, nil
}

func (c *config) verify(leaf *x509.Certificate, intermediates []*x509.Certificate, now time.Time) error {
	pool := x509.NewCertPool()
	for _, cert := range intermediates {
		pool.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: pool, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	if len(c.allowedNames) > 0 && !slices.Contains(c.allowedNames, leaf.Subject.CommonName) {
		return fmt.Errorf("%q is not the front proxy", leaf.Subject.CommonName)
	}
	return nil
}
