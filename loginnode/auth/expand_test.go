package auth

import (
	"testing"

	"golang.org/x/crypto/ssh"
)

// %f of a certificate is the fingerprint of its key, as with sshd, whether or not the
// certificate is verified.
func TestExpandFingerprintOfCertificate(t *testing.T) {
	signer := newKey(t)
	cert := forged(t, signer.PublicKey(), signer)
	want := ssh.FingerprintSHA256(cert.Key)
	for name, key := range map[string]ssh.PublicKey{"verified": cert, "not verified": unverified{cert}} {
		if got := expand("%f", &User{Name: "ann"}, key); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := expand("%i", &User{Name: "ann"}, unverified{cert}); got != "%i" {
		t.Errorf("the unverified id: %q", got)
	}
}
