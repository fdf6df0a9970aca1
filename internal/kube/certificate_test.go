package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// clientCertificate returns the user of a kubeconfig with a certificate of that serial
// number, which is valid until then.
func clientCertificate(t *testing.T, serial int64, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}",
		encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private))
}

// TestReplacedClientCertificateIsRead sends requests on one client over the end of its first
// certificate. The server refuses expired certificates, also on open connections, as the API
// server does.
func TestReplacedClientCertificateIsRead(t *testing.T) {
	start := time.Now().Truncate(time.Second)
	now := start
	var presented []int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaf := r.TLS.PeerCertificates[0]
		presented = append(presented, leaf.SerialNumber.Int64())
		if now.After(leaf.NotAfter) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, "{}")
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	files := map[string]string{"/k": kubeconfig(s.URL, ca, clientCertificate(t, 1, start.Add(time.Hour)))}
	p := process(map[string]string{"KUBECONFIG": "/k"}, files)
	p.Now = func() time.Time { return now }
	c, err := Connect(p, "")
	if err != nil {
		t.Fatal(err)
	}
	get := func() error { return c.Get(t.Context(), "/x", nil, nil) }
	if err := get(); err != nil {
		t.Fatal(err)
	}
	files["/k"] = kubeconfig(s.URL, ca, clientCertificate(t, 2, start.Add(3*time.Hour)))
	now = start.Add(2 * time.Hour)
	if err := get(); err != nil {
		t.Errorf("with a new certificate in the kubeconfig: %v; presented %v", err, presented)
	}
	// Nobody replaces the second one.
	now = start.Add(4 * time.Hour)
	err = get()
	var e *Error
	if !errors.As(err, &e) || e.Kind != Expired || !strings.Contains(e.Message, "the certificate in /k expired at ") {
		t.Errorf("with an expired certificate: %v", err)
	}
	files["/k"] = "unusable: ["
	now = start.Add(5 * time.Hour)
	if err := get(); KindOf(err) != Expired {
		t.Errorf("with an unusable kubeconfig: %v", err)
	}
}
