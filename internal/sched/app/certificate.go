package app

import (
	"context"
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

// ownCertificate returns a certificate for hosts that is signed by the stored CA, which
// it creates if there is none. The secret is derived from the key of the CA.
func ownCertificate(ctx context.Context, c client.Client, hosts []string) (files TLSFiles, secret string, err error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: authoritySecret}
	for {
		err := c.Get(ctx, key, s)
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return files, "", fmt.Errorf("authority of the API role: %w", err)
		}
		ca, err := sign(pkix.Name{CommonName: "berth-api-ca"}, nil, nil)
		if err != nil {
			return files, "", err
		}
		s = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: ca.Certificate, corev1.TLSPrivateKeyKey: ca.Key},
		}
		if err := c.Create(ctx, s); err == nil {
			break
		} else if !apierrors.IsAlreadyExists(err) {
			return files, "", fmt.Errorf("authority of the API role: %w", err)
		}
	}
	authority, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return files, "", fmt.Errorf("authority of the API role in Secret %s: %w", authoritySecret, err)
	}
	files, err = sign(pkix.Name{CommonName: serviceHost}, hosts, &authority)
	files.CA = s.Data[corev1.TLSCertKey]
	mac := hmac.New(sha256.New, s.Data[corev1.TLSPrivateKeyKey])
	mac.Write([]byte("webhooks"))
	return files, hex.EncodeToString(mac.Sum(nil)[:16]), err
}

// sign returns a key and a certificate for it: of a server for hosts, signed by
// authority, or of a new CA if that is nil.
func sign(name pkix.Name, hosts []string, authority *tls.Certificate) (TLSFiles, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return TLSFiles{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return TLSFiles{}, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: name,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
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
		return TLSFiles{}, fmt.Errorf("certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return TLSFiles{}, err
	}
	return TLSFiles{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
