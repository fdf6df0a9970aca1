package kube

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// A client certificate is read again certificateMargin before it expires, and at most every
// certificatePause.
const (
	certificateMargin = time.Minute
	certificatePause  = time.Second
)

// certificateTransport sends requests with the client certificate of a kubeconfig. It reads
// the kubeconfig again when the certificate expires: somebody may have replaced it, as the
// local cluster does, and a terminal UI, an allocation or a login node can run for longer
// than a certificate is valid. Safe for concurrent use.
type certificateTransport struct {
	next *http.Transport
	read func() (*Config, error)
	now  func() time.Time

	mu      sync.Mutex
	current tls.Certificate
	tried   time.Time // when the kubeconfig was read again last
}

// withCertificate returns a transport that sends by next, which has one client certificate.
func withCertificate(next *http.Transport, read func() (*Config, error), now func() time.Time) *certificateTransport {
	t := &certificateTransport{next: next, read: read, now: now, current: next.TLSClientConfig.Certificates[0]}
	next.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		c := t.current
		return &c, nil
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *certificateTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.renew()
	return t.next.RoundTrip(req)
}

// renew reads the certificate again if it is about to expire. If there is no later one, the
// certificate stays, and the server refuses it in its own words.
func (t *certificateTransport) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Add(certificateMargin).Before(t.current.Leaf.NotAfter) || now.Sub(t.tried).Abs() < certificatePause {
		return
	}
	t.tried = now
	cfg, err := t.read()
	if err != nil {
		return
	}
	later, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
	if err != nil || !later.Leaf.NotAfter.After(t.current.Leaf.NotAfter) {
		return
	}
	t.current = later
	t.next.CloseIdleConnections() // they present the previous certificate
}

// expiry returns when the client certificate expires; zero: there is none.
func (c *Client) expiry() time.Time {
	next := c.http.Transport
	if t, ok := next.(*socketTransport); ok {
		next, _ = t.server()
	}
	if t, ok := next.(*certificateTransport); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.current.Leaf.NotAfter
	}
	return time.Time{}
}
