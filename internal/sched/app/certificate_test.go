package app

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/wire"
)

func TestStoredAuthorityIsRenewed(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	start := time.Now()
	_, first, secret, err := ownCertificate(t.Context(), c, []string{"h"}, start)
	if err != nil {
		t.Fatal(err)
	}
	if _, ca, same, err := ownCertificate(t.Context(), c, []string{"h"}, start.AddDate(7, 0, 0)); err != nil ||
		string(ca) != string(first) || same != secret {
		t.Errorf("after 7 years: another CA or secret, %v", err)
	}
	late := start.AddDate(9, 0, 0)
	own, ca, same, err := ownCertificate(t.Context(), c, []string{"h"}, late)
	if err != nil || string(ca) == string(first) || same != secret {
		t.Fatalf("after 9 years: %v; the CA was renewed: %v; the secret stayed: %v", err, string(ca) != string(first),
			same == secret)
	}
	for name, roots := range map[string][]byte{"previous": first, "new": ca} {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: late, DNSName: "h"}); err != nil {
			t.Errorf("with the %s certificate of the CA: %v", name, err)
		}
	}
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: authoritySecret}
	if err := c.Get(t.Context(), key, s); err != nil || string(s.Data[corev1.TLSCertKey]) != string(ca) {
		t.Errorf("the new certificate is not stored: %v", err)
	}
}

// writeCertificate writes a CA and a certificate that it signed at that time.
func writeCertificate(t *testing.T, f TLSFiles, at time.Time) {
	t.Helper()
	ca, err := sign(pkix.Name{CommonName: "ca"}, nil, nil, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{f.CA: ca.certificate, f.Certificate: ca.certificate, f.Key: ca.key} {
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTroubleWithCertificateIsReported(t *testing.T) {
	dir := t.TempDir()
	files := TLSFiles{CA: filepath.Join(dir, "ca.crt"), Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	if files.check() == nil || (&TLSFiles{CA: files.CA}).check() == nil || (&TLSFiles{}).check() != nil {
		t.Error("missing files are accepted, or none are not")
	}
	start := time.Now()
	writeCertificate(t, files, start)
	if err := files.check(); err != nil {
		t.Fatal(err)
	}
	e := &endpoint{files: files}
	if err := e.certify(t.Context(), &Config{TLS: files}, nil); err != nil {
		t.Fatal(err)
	}
	expect := func(at time.Time, want string) {
		t.Helper()
		if got := e.certificateTrouble(at); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	expect(start, "")
	expect(start.AddDate(9, 0, 0), "it expires at ")
	expect(start.AddDate(11, 0, 0), "it has expired")
	if err := e.checkAuthority(); err != nil {
		t.Error(err)
	}
	writeCertificate(t, files, start.AddDate(9, 0, 0))
	expect(start.AddDate(11, 0, 0), "")
	if err := e.checkAuthority(); err == nil || !strings.Contains(err.Error(), files.CA) {
		t.Errorf("the CA was replaced: %v", err)
	}
	if err := os.WriteFile(files.Key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(start.AddDate(10, 0, 0), "the new files cannot be used")
	if _, err := certfile.Open(files.Certificate, files.Key); err == nil {
		t.Error("the key is usable")
	}
	if b, _ := pem.Decode(e.ca); b == nil {
		t.Error("no CA")
	}
}
