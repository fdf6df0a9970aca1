package auth

import (
	"context"
	"crypto/rand"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/loginnode/asuser"
)

// forged is a certificate of ann's that names an authority; signer signs it.
func forged(t *testing.T, authority ssh.PublicKey, signer ssh.Signer) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: newKey(t).PublicKey(), CertType: ssh.UserCert, KeyId: "--chosen-by-client", ValidPrincipals: []string{"ann"},
		ValidBefore: ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	cert.SignatureKey = authority
	return cert
}

// Unverified values are not passed to commands as arguments: a certificate that only
// names a trusted CA starts neither command, and the command for keys never gets its
// name.
func TestForgedCertificatesReachNoCommand(t *testing.T) {
	dir, err := os.MkdirTemp("", "forged") // accessible to the command's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(dir, "seen")
	script := filepath.Join(dir, "script")
	exectest.Write(t, script, "#!/bin/sh\necho \"$@\" >> "+seen+"\nchmod 666 "+seen+"\necho ann\n")
	ca := newKey(t)
	trusted := filepath.Join(dir, "ca")
	if err := os.WriteFile(trusted, ssh.MarshalAuthorizedKey(ca.PublicKey()), 0o644); err != nil {
		t.Fatal(err)
	}
	runs := asuser.User{UID: os.Geteuid(), GID: os.Getegid()}
	if runs.UID == 0 {
		runs = asuser.User{UID: 65534, GID: 65534}
	}
	c := &Config{
		Users: DirectoryFunc(userAnn), TrustedCAs: trusted, KeysCommandUser: runs, Remote: true,
		PrincipalsCommand: []string{script, "principals", "%i"}, KeysCommand: []string{script, "keys", "%u", "%i"},
	}
	try := func(cert *ssh.Certificate) error {
		_, err := c.PublicKey(t.Context(), Attempt{User: "ann", Source: netip.MustParseAddr("192.0.2.1"), Key: cert, Now: time.Now()})
		return err
	}
	if err := try(forged(t, ca.PublicKey(), newKey(t))); err == nil {
		t.Error("a forged certificate was taken")
	}
	if data, err := os.ReadFile(seen); err == nil {
		t.Errorf("commands ran: %q", data)
	}
	unknown := newKey(t)
	if err := try(forged(t, unknown.PublicKey(), unknown)); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	if data, err := os.ReadFile(seen); err != nil || string(data) != "keys ann %i\n" {
		t.Errorf("the commands saw %q, %v", data, err)
	}
	if err := try(forged(t, ca.PublicKey(), ca)); err != nil {
		t.Errorf("a good certificate: %v", err)
	}
	if data, _ := os.ReadFile(seen); !strings.HasSuffix(string(data), "principals --chosen-by-client\n") {
		t.Errorf("the commands saw %q", data)
	}
}

func userAnn(context.Context, string) (*User, error) {
	return &User{Name: "ann", UID: 61000, GID: 61000, Home: "/nonexistent", Shell: "/bin/sh"}, nil
}
