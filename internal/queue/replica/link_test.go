package replica

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newCertificate returns a certificate for the DNS name that by signed, and its key; by nil:
// an authority, signed by itself.
func newCertificate(t *testing.T, by *authority, dns string, expires time.Time) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "scheduler"},
		NotAfter: expires, BasicConstraintsValid: true, IsCA: dns == "",
	}
	if dns != "" {
		template.DNSNames = []string{dns}
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// TestPeers: only certificates for the name, of the authority, that have not expired, are
// those of a peer.
func TestPeers(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	ca, other := newCertificate(t, nil, "", soon), newCertificate(t, nil, "", soon)
	between := newCertificate(t, ca, "", soon)
	const host = "scheduler.berth-system.svc"
	good := newCertificate(t, ca, host, soon).cert
	chained := newCertificate(t, between, host, soon).cert
	isPeer := Peers(ca.pem(), host)
	for name, tt := range map[string]struct {
		chain []*x509.Certificate
		want  bool
	}{
		"a peer":                       {[]*x509.Certificate{good}, true},
		"through an intermediate":      {[]*x509.Certificate{chained, between.cert}, true},
		"without its intermediate":     {[]*x509.Certificate{chained}, false},
		"no certificate":               {nil, false},
		"for another name":             {[]*x509.Certificate{newCertificate(t, ca, "x."+host, soon).cert}, false},
		"of another authority":         {[]*x509.Certificate{newCertificate(t, other, host, soon).cert}, false},
		"with the authority it claims": {[]*x509.Certificate{newCertificate(t, other, host, soon).cert, other.cert}, false},
		"expired":                      {[]*x509.Certificate{newCertificate(t, ca, host, past).cert}, false},
		"the authority itself":         {[]*x509.Certificate{ca.cert}, false},
		"a good one behind a bad one":  {[]*x509.Certificate{newCertificate(t, other, host, soon).cert, good}, false},
	} {
		if got := isPeer(tt.chain); got != tt.want {
			t.Errorf("%s: peer %v", name, got)
		}
	}
	for _, ca := range []string{"", "no certificate"} {
		if Peers([]byte(ca), host)([]*x509.Certificate{good}) {
			t.Errorf("the authority %q recognizes a peer", ca)
		}
	}
}

// TestLeaderIsLookedUpAgainAfterError: an address is used for a while, and not after a
// request to it failed.
func TestLeaderIsLookedUpAgainAfterError(t *testing.T) {
	now := time.Unix(1000, 0)
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	gone := Address{URL: closed.URL, CA: address.CA}
	finds := 0
	present := address
	reader := newReader(address, &now)
	reader.Link.Find = func(context.Context) (Address, error) { finds++; return present, nil }
	query := func(works bool, wantFinds int) {
		t.Helper()
		if _, err := reader.query(); (err == nil) != works || finds != wantFinds {
			t.Errorf("%v after %d searches, want %d", err, finds, wantFinds)
		}
	}
	query(true, 1)
	query(true, 1)
	present = gone
	reader.Link.forget()
	query(false, 2) // another process leads, and is gone already
	present = address
	query(true, 3)
	query(true, 3)
}

func TestBadAddresses(t *testing.T) {
	good := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, find := range map[string]func() (Address, error){
		"no leader":       func() (Address, error) { return Address{}, errors.New("no lease") },
		"no URL":          func() (Address, error) { return Address{URL: "https://%zz", CA: good.CA}, nil },
		"no authority":    func() (Address, error) { return Address{URL: good.URL}, nil },
		"a bad authority": func() (Address, error) { return Address{URL: good.URL, CA: []byte("x")}, nil },
		"another's server": func() (Address, error) {
			return Address{URL: good.URL, CA: newCertificate(t, nil, "", time.Now().Add(time.Hour)).pem()}, nil
		},
	} {
		now := time.Unix(1000, 0)
		reader := newReader(good, &now)
		reader.Link.Find = func(context.Context) (Address, error) { return find() }
		if _, err := reader.query(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestForward: the leader gets the request as it came, and the caller its response.
func TestForward(t *testing.T) {
	now := time.Unix(1000, 0)
	reader := newReader(serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Remote-User"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte("seen "), body...))
	}), &now)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/apis/x?a=1&b=%2F", strings.NewReader("body"))
	r.Header.Set("X-Remote-User", "anna")
	reader.Forward(w, r)
	if got := w.Header().Get("X-Seen"); w.Code != http.StatusTeapot || got != "POST /apis/x?a=1&b=%2F anna" ||
		w.Body.String() != "seen body" {
		t.Errorf("%d %q %s", w.Code, got, w.Body)
	}
}

// TestForwardWithoutALeader: the caller gets a Status with the time after which to retry.
func TestForwardWithoutALeader(t *testing.T) {
	now := time.Unix(1000, 0)
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	good := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, find := range map[string]func(context.Context) (Address, error){
		"not found": func(context.Context) (Address, error) { return Address{}, errors.New("no lease") },
		"gone":      func(context.Context) (Address, error) { return Address{URL: closed.URL, CA: good.CA}, nil },
	} {
		reader := newReader(good, &now)
		reader.Link.Find = find
		w := httptest.NewRecorder()
		reader.Forward(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/x", nil))
		var s metav1.Status
		err := json.Unmarshal(w.Body.Bytes(), &s)
		if err != nil || w.Code != http.StatusServiceUnavailable || s.Kind != "Status" || s.Code != int32(w.Code) ||
			s.Reason != metav1.StatusReasonServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s, %v", name, w.Code, w.Body, err)
		}
	}
}
