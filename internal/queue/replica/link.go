package replica

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Address is the URL of the leader and the authority of its certificate.
type Address struct {
	URL string
	CA  []byte // PEM
}

// Link is the connection to the leader. Find must be set. Safe for concurrent use.
type Link struct {
	// Find returns the address of the present leader.
	Find func(context.Context) (Address, error)
	// Certificate returns this process's client certificate, by which the leader recognizes
	// a peer, as tls.Config.GetClientCertificate.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

	mu        sync.Mutex
	address   Address
	found     time.Time
	base      *url.URL
	transport *http.Transport
}

// foundFor is how long an address is used before Find is called again.
const foundFor = 10 * time.Second

// client returns a transport and the URL of the leader. It finds the leader if the address
// is old.
func (l *Link) client(ctx context.Context) (*http.Transport, *url.URL, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.transport != nil && time.Since(l.found) < foundFor {
		return l.transport, l.base, nil
	}
	a, err := l.Find(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the leader: %w", err)
	}
	l.found = time.Now()
	if l.transport != nil && a.URL == l.address.URL && slices.Equal(a.CA, l.address.CA) {
		return l.transport, l.base, nil
	}
	base, err := url.Parse(a.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("the leader's URL: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, nil, errors.New("the authority of the leader's certificate is not known")
	}
	if l.transport != nil {
		l.transport.CloseIdleConnections()
	}
	l.address, l.base = a, base
	l.transport = &http.Transport{
		TLSClientConfig: &tls.Config{
			RootCAs: roots, GetClientCertificate: l.Certificate, MinVersion: tls.VersionTLS12,
		},
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 5 * time.Second,
	}
	return l.transport, l.base, nil
}

// forget makes the next call of client find the leader again.
func (l *Link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = time.Time{}
}

// Forward has the leader serve the request, which may upgrade its connection. The request
// keeps the headers with the caller's name by which the caller was authenticated here.
func (l *Leader) Forward(w http.ResponseWriter, r *http.Request) {
	transport, base, err := l.Link.client(r.Context())
	if err != nil {
		unavailable(w, err)
		return
	}
	(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.Host = ""
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			l.Link.forget()
			unavailable(w, err)
		},
	}).ServeHTTP(w, r)
}

// unavailable responds while there is no leader.
func unavailable(w http.ResponseWriter, err error) {
	body, merr := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "no scheduler leads at the moment: " + err.Error(),
	})
	if merr != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(body) // the caller may be gone
}

// Peers returns a function that recognizes other API roles by their certificates: those
// that the authority ca (PEM) signed for the name host. It recognizes none if ca has no
// certificate.
func Peers(ca []byte, host string) func([]*x509.Certificate) bool {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return func([]*x509.Certificate) bool { return false }
	}
	return func(chain []*x509.Certificate) bool {
		if len(chain) == 0 || chain[0].VerifyHostname(host) != nil {
			return false
		}
		between := x509.NewCertPool()
		for _, c := range chain[1:] {
			between.AddCert(c)
		}
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err == nil
	}
}
