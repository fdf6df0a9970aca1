package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestAuthoritiesSurvive(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if string(a.CA.CertPEM) != string(b.CA.CertPEM) || string(a.CA.CertPEM) == string(a.FrontProxy.CertPEM) {
		t.Error("want two different authorities that are kept")
	}
}

func TestCertificatesHaveOneUse(t *testing.T) {
	s, err := Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA.CertPEM)
	check := func(l Leaf, use x509.ExtKeyUsage, host string) error {
		p, err := s.CA.Sign(l)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	server, client := Leaf{CommonName: "s", Hosts: []string{"127.0.0.1", "x.svc"}}, Leaf{CommonName: "c", Organizations: []string{"o"}}
	for _, host := range []string{"127.0.0.1", "x.svc"} {
		if err := check(server, x509.ExtKeyUsageServerAuth, host); err != nil {
			t.Error(err)
		}
	}
	if err := check(client, x509.ExtKeyUsageClientAuth, ""); err != nil {
		t.Error(err)
	}
	if check(server, x509.ExtKeyUsageClientAuth, "") == nil || check(client, x509.ExtKeyUsageServerAuth, "") == nil {
		t.Error("a certificate is valid for another use")
	}
}
