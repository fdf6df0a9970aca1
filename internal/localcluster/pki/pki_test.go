package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"
)

func TestAuthoritiesSurvive(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, time.Now, LeafLife)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, time.Now, LeafLife)
	if err != nil {
		t.Fatal(err)
	}
	if string(a.CA.CertPEM) != string(b.CA.CertPEM) || string(a.CA.CertPEM) == string(a.FrontProxy.CertPEM) {
		t.Error("want two different authorities that are kept")
	}
}

func TestCertificatesHaveOneUse(t *testing.T) {
	s, err := Open(t.TempDir(), time.Now, LeafLife)
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

// verify returns nil if the certificate file is valid at that time with the CA.
func verify(t *testing.T, path string, ca []byte, at time.Time) error {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

func TestRenewedLeafKeepsItsKey(t *testing.T) {
	now := time.Now()
	s, err := Open(t.TempDir(), func() time.Time { return now }, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{CommonName: "x", Hosts: []string{"127.0.0.1"}}
	if err := s.Renew("x", s.CA, leaf); err == nil {
		t.Error("a certificate that does not exist was renewed")
	}
	if err := s.Write("x", s.CA, leaf); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(s.Path("x.key"))
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(90 * time.Minute)
	if verify(t, s.Path("x"), s.CA.CertPEM, later) == nil {
		t.Error("the certificate does not expire")
	}
	now = now.Add(40 * time.Minute)
	if err := s.Renew("x", s.CA, leaf); err != nil {
		t.Fatal(err)
	}
	if err := verify(t, s.Path("x"), s.CA.CertPEM, later); err != nil {
		t.Error(err)
	}
	if again, err := os.ReadFile(s.Path("x.key")); err != nil || string(again) != string(key) {
		t.Errorf("another key: %v", err)
	}
}

// TestAuthorityIsRenewed starts a cluster years later. Who trusts the CA's previous
// certificate still trusts what the CA signs, until that certificate expires.
func TestAuthorityIsRenewed(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	open := func() *Store {
		s, err := Open(dir, func() time.Time { return now }, LeafLife)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open()
	now = now.AddDate(16, 0, 0)
	if s := open(); string(s.CA.CertPEM) != string(first.CA.CertPEM) {
		t.Error("renewed too early")
	}
	now = now.AddDate(2, 0, 0)
	second := open()
	if string(second.CA.CertPEM) == string(first.CA.CertPEM) ||
		string(second.FrontProxy.CertPEM) == string(first.FrontProxy.CertPEM) {
		t.Fatal("not renewed")
	}
	if s := open(); string(s.CA.CertPEM) != string(second.CA.CertPEM) {
		t.Error("the new certificate is not kept")
	}
	if err := second.Write("x", second.CA, Leaf{CommonName: "x"}); err != nil {
		t.Fatal(err)
	}
	for name, ca := range map[string][]byte{"previous": first.CA.CertPEM, "new": second.CA.CertPEM} {
		if err := verify(t, second.Path("x"), ca, now.Add(time.Hour)); err != nil {
			t.Errorf("with the %s certificate of the CA: %v", name, err)
		}
	}
	now = now.AddDate(15, 0, 0)
	if err := second.Write("y", second.CA, Leaf{CommonName: "y"}); err != nil {
		t.Fatal(err)
	}
	if err := verify(t, second.Path("y"), second.CA.CertPEM, now); err != nil {
		t.Errorf("after the end of the first certificate: %v", err)
	}
}
