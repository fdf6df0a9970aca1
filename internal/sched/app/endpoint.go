package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/replica"
	"github.com/berth-hpc/berth/internal/wire"
)

// serviceName is the Service of the API role in the system namespace.
const serviceName = "berth-api"

// serviceHost is the host name of the aggregated API for kube-apiserver.
const serviceHost = serviceName + "." + wire.SystemNamespace + ".svc"

// endpoint is the address and the certificate of the API role.
type endpoint struct {
	net.Listener
	certificate *certfile.File
	ca          []byte   // PEM
	files       TLSFiles // where certificate and ca are from; may be zero
	// peer recognizes the certificates of other processes of Berth.
	peer func([]*x509.Certificate) bool
	// secret is the last part of the webhooks' paths; "": none.
	secret string
}

// openEndpoint listens, sets the URLs that cfg does not have, and creates a certificate
// for them.
func openEndpoint(ctx context.Context, cfg *Config, c *control.Cluster) (*endpoint, error) {
	e := &endpoint{Listener: cfg.Listener}
	if e.Listener == nil {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
		if err != nil {
			return nil, fmt.Errorf("API role: %w", err)
		}
		e.Listener = l
	}
	if cfg.PublicURL == "" {
		cfg.PublicURL = "https://" + reachable(e.Addr())
	}
	if cfg.PodURL == "" {
		var err error
		if cfg.PodURL, err = podURL(ctx, c.Client, cfg.PublicURL); err != nil {
			return nil, err
		}
	}
	if err := e.certify(ctx, cfg, c.Client); err != nil {
		return nil, fmt.Errorf("certificate of the API role: %w", err)
	}
	e.peer = replica.Peers(e.ca, serviceHost)
	return e, nil
}

// certify opens the configured certificate, or creates one.
func (e *endpoint) certify(ctx context.Context, cfg *Config, c client.Client) (err error) {
	if e.files = cfg.TLS; e.files != (TLSFiles{}) {
		if e.ca, err = os.ReadFile(e.files.CA); err == nil {
			e.certificate, err = certfile.Open(e.files.Certificate, e.files.Key)
		}
		return err
	}
	var own tls.Certificate
	own, e.ca, e.secret, err = ownCertificate(ctx, c, hostsOf(cfg.PublicURL, cfg.PodURL), time.Now())
	e.certificate = certfile.Fixed(own)
	return err
}

// onlyPeers refuses requests that are not from other processes of Berth, which all have
// a certificate for the name of the API role.
func (e *endpoint) onlyPeers(r *http.Request) error {
	if r.TLS == nil || !e.peer(r.TLS.PeerCertificates) {
		return errors.New("this path is for Berth's own processes")
	}
	return nil
}

// podURL returns where agents reach the server that the API server reaches at public.
// For a Service it has the Service's address, so that pods need no cluster DNS.
func podURL(ctx context.Context, c client.Client, public string) (string, error) {
	u, err := url.Parse(public)
	if err != nil {
		return "", fmt.Errorf("URL of the API role: %w", err)
	}
	if u.Hostname() != serviceHost {
		return public, nil
	}
	s := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: serviceName}, s); err != nil {
		return "", fmt.Errorf("the Service of the API role: %w", err)
	}
	if net.ParseIP(s.Spec.ClusterIP) == nil {
		return public, nil
	}
	return "https://" + net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(portOf(u)))), nil
}

// reachable returns the address to dial from this machine.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: t.Port}).String()
}

func hostsOf(urls ...string) []string {
	hosts := []string{serviceHost, "localhost", "127.0.0.1"}
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
