package app

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// authoritySecret has the CA of the API role, so that a restart does not invalidate
// what pods and webhook configurations trust.
const authoritySecret = "berth-api-tls"

// authorityLife is how long the CA, and what it signs, is valid. authorityRenewal before its
// end the CA gets a new certificate for the same key, so that pods and kubeconfigs with
// either certificate trust the server.
const (
	authorityLife    = 10 // years
	authorityRenewal = 2  // years
)

// credential is a certificate with its key, PEM.
type credential struct{ certificate, key []byte }

// ownCertificate returns a certificate for hosts and the stored CA (PEM) that signed it. It
// creates the CA if there is none. The secret is derived from the key of the CA.
func ownCertificate(ctx context.Context, c client.Client, hosts []string, now time.Time) (
	own tls.Certificate, ca []byte, secret string, err error,
) {
	s, err := storedAuthority(ctx, c, now)
	if err != nil {
		return own, nil, "", err
	}
	authority, err := parseAuthority(s)
	if err != nil {
		return own, nil, "", err
	}
	leaf, err := sign(pkix.Name{CommonName: serviceHost}, hosts, &authority, nil, now)
	if err != nil {
		return own, nil, "", err
	}
	mac := hmac.New(sha256.New, s.Data[corev1.TLSPrivateKeyKey])
	mac.Write([]byte("webhooks"))
	own, err = tls.X509KeyPair(leaf.certificate, leaf.key)
	return own, s.Data[corev1.TLSCertKey], hex.EncodeToString(mac.Sum(nil)[:16]), err
}

// storedAuthority returns the Secret with the CA, which it creates or renews if necessary.
func storedAuthority(ctx context.Context, c client.Client, now time.Time) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: authoritySecret}
	for {
		s := &corev1.Secret{}
		err := c.Get(ctx, key, s)
		switch {
		case apierrors.IsNotFound(err):
			var ca credential
			if ca, err = sign(pkix.Name{CommonName: "berth-api-ca"}, nil, nil, nil, now); err != nil {
				return nil, err
			}
			s = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				Type:       corev1.SecretTypeTLS,
				Data:       map[string][]byte{corev1.TLSCertKey: ca.certificate, corev1.TLSPrivateKeyKey: ca.key},
			}
			err = c.Create(ctx, s)
		case err == nil:
			err = renewAuthority(ctx, c, s, now)
		}
		switch {
		case err == nil:
			return s, nil
		case !isConflict(err): // else another process was faster
			return nil, fmt.Errorf("authority of the API role: %w", err)
		}
	}
}

// renewAuthority gives the CA a new certificate, and stores it, if its present one ends
// within authorityRenewal.
func renewAuthority(ctx context.Context, c client.Client, s *corev1.Secret, now time.Time) error {
	authority, err := parseAuthority(s)
	if err != nil || authority.Leaf.NotAfter.After(now.AddDate(authorityRenewal, 0, 0)) {
		return err
	}
	key, ok := authority.PrivateKey.(crypto.Signer)
	if !ok {
		return fmt.Errorf("authority of the API role in Secret %s: its key cannot sign", authoritySecret)
	}
	ca, err := sign(authority.Leaf.Subject, nil, nil, key, now)
	if err != nil {
		return err
	}
	s.Data[corev1.TLSCertKey] = ca.certificate
	return c.Update(ctx, s)
}

func parseAuthority(s *corev1.Secret) (tls.Certificate, error) {
	authority, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return authority, fmt.Errorf("authority of the API role in Secret %s: %w", authoritySecret, err)
	}
	return authority, nil
}

// sign returns a key and a certificate for it: of a server for hosts, signed by authority,
// or of a CA if that is nil. The key is the given one, or a new one if that is nil.
func sign(name pkix.Name, hosts []string, authority *tls.Certificate, key crypto.Signer, now time.Time) (
	credential, error,
) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return credential{}, err
		}
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return credential{}, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: name,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(authorityLife, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	parent, signer := t, any(key)
	if authority == nil {
		t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign
	} else {
		parent, signer = authority.Leaf, authority.PrivateKey
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		slices.Sort(hosts)
		for _, h := range slices.Compact(hosts) {
			if ip := net.ParseIP(h); ip != nil {
				t.IPAddresses = append(t.IPAddresses, ip)
			} else {
				t.DNSNames = append(t.DNSNames, h)
			}
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return credential{}, fmt.Errorf("certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return credential{}, err
	}
	return credential{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
