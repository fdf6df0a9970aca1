package frontproxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
)

// setup is an authenticator whose authority is published in the cluster.
type setup struct {
	*frontproxy.Authenticator
	cluster   *control.Cluster
	authority *fake.Authority
	now       time.Time
}

func newSetup(t *testing.T) *setup {
	s := &setup{authority: fake.NewAuthority(t), now: time.Now()}
	s.cluster = fake.Cluster(interceptor.Funcs{}, s.authority.ConfigMap())
	s.Authenticator = &frontproxy.Authenticator{Client: s.cluster.Client, Now: func() time.Time { return s.now }}
	return s
}

// request is a request for the user over a connection with the certificate; nil:
// over one without.
func request(t testing.TB, cert *tls.Certificate, user string, groups ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{}
	if cert != nil {
		r.TLS.PeerCertificates = []*x509.Certificate{cert.Leaf}
	}
	if user != "" {
		r.Header.Set("X-Remote-User", user)
	}
	for _, g := range groups {
		r.Header.Add("X-Remote-Group", g)
	}
	return r
}

func TestAuthenticate(t *testing.T) {
	s := newSetup(t)
	proxy := s.authority.Client(t, fake.FrontProxyName)
	user, groups, err := s.Authenticate(request(t, proxy, "anna", "staff", "lab"))
	if err != nil || user != "anna" || !slices.Equal(groups, []string{"staff", "lab"}) {
		t.Errorf("%q %q: %v", user, groups, err)
	}
	if _, _, err := s.Authenticate(request(t, proxy, "")); err == nil {
		t.Error("a request without a user is accepted")
	}
	if err := s.AuthenticateConnection(request(t, proxy, "")); err != nil {
		t.Errorf("a connection needs no user: %v", err)
	}
	for name, cert := range map[string]*tls.Certificate{
		"no certificate":    nil,
		"another name":      s.authority.Client(t, "anna"),
		"another authority": fake.NewAuthority(t).Client(t, fake.FrontProxyName),
	} {
		if _, _, err := s.Authenticate(request(t, cert, "anna")); err == nil {
			t.Errorf("%s: a request is accepted", name)
		}
		if err := s.AuthenticateConnection(request(t, cert, "")); err == nil {
			t.Errorf("%s: a connection is accepted", name)
		}
	}
}

// TestPeer: another of Berth's API roles may forward what it has authenticated.
func TestPeer(t *testing.T) {
	s := newSetup(t)
	peer := fake.NewAuthority(t).Client(t, "peer")
	s.IsPeer = func(certs []*x509.Certificate) bool { return len(certs) > 0 && certs[0].Equal(peer.Leaf) }
	r := request(t, peer, "anna")
	if user, _, err := s.Authenticate(r); err != nil || user != "anna" || !s.FromPeer(r) {
		t.Errorf("%q, from a peer: %v, %v", user, s.FromPeer(r), err)
	}
	if s.FromPeer(request(t, s.authority.Client(t, fake.FrontProxyName), "anna")) {
		t.Error("the front proxy is taken for a peer")
	}
}

// TestAuthorityChanges: the API server's authority is replaced while this process
// runs.
func TestAuthorityChanges(t *testing.T) {
	s := newSetup(t)
	before := s.authority.Client(t, fake.FrontProxyName)
	if err := s.AuthenticateConnection(request(t, before, "")); err != nil {
		t.Fatal(err)
	}
	next := fake.NewAuthority(t)
	if err := s.cluster.Client.Update(t.Context(), next.ConfigMap()); err != nil {
		t.Fatal(err)
	}
	after := next.Client(t, fake.FrontProxyName)
	if err := s.AuthenticateConnection(request(t, after, "")); err == nil {
		t.Error("the configuration is read twice within a second")
	}
	s.now = s.now.Add(2 * time.Second)
	if err := s.AuthenticateConnection(request(t, after, "")); err != nil {
		t.Errorf("the new authority: %v", err)
	}
	if err := s.AuthenticateConnection(request(t, before, "")); err == nil {
		t.Error("the old authority is still accepted")
	}
}

// TestNotReady: no client is authenticated until there is a configuration.
func TestNotReady(t *testing.T) {
	s := newSetup(t)
	if err := s.cluster.Client.Delete(t.Context(), s.authority.ConfigMap()); err != nil {
		t.Fatal(err)
	}
	r := request(t, s.authority.Client(t, fake.FrontProxyName), "anna")
	if _, _, err := s.Authenticate(r); !errors.Is(err, frontproxy.ErrNotReady) {
		t.Errorf("%v", err)
	}
	if err := s.cluster.Client.Create(t.Context(), s.authority.ConfigMap()); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(2 * time.Second)
	if _, _, err := s.Authenticate(r); err != nil {
		t.Errorf("with a configuration: %v", err)
	}
}
