// Package pki has the certificates of a local cluster: two CAs (one for servers and
// clients, one for the API server's front proxy), the key that signs ServiceAccount
// tokens, and the leaf certificates signed by the CAs.
//
// The CAs and the key are in files and survive restarts; leaf certificates are cheap
// and are created at each start.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caLife   = 20 * 365 * 24 * time.Hour
	leafLife = 366 * 24 * time.Hour
	// skew allows for clocks that are behind.
	skew = time.Hour
)

// Store is a directory of certificates. Its methods are not safe for concurrent
// use with each other.
type Store struct {
	dir string
	now func() time.Time

	// CA signs servers and clients, FrontProxy the API server as a client of
	// aggregated APIs and webhooks.
	CA         *Authority
	FrontProxy *Authority
}

// Authority signs certificates.
type Authority struct {
	CertPEM []byte
	cert    *x509.Certificate
	key     crypto.Signer
	now     func() time.Time
}

// Pair is a certificate with its key, PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Leaf describes a certificate.
type Leaf struct {
	CommonName    string
	Organizations []string
	// Hosts are the DNS names and IP addresses of a server's certificate. A leaf
	// without hosts is a client's.
	Hosts []string
	// Client allows a server's certificate to be used as a client's, too.
	Client bool
}

// Open reads the directory's CAs and key and creates those that are missing. It creates
// the directory with mode 0700 if it is missing. now is the clock.
func Open(dir string, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, now: now}
	var err error
	if s.CA, err = s.authority("ca", "berth-ca"); err != nil {
		return nil, err
	}
	if s.FrontProxy, err = s.authority("front-proxy-ca", "berth-front-proxy-ca"); err != nil {
		return nil, err
	}
	return s, s.serviceAccountKey()
}

// Path returns the path of a file in the directory.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, name) }

// Write signs a leaf and writes it as NAME.crt and NAME.key.
func (s *Store) Write(name string, ca *Authority, leaf Leaf) error {
	p, err := ca.Sign(leaf)
	if err != nil {
		return err
	}
	return s.writePair(name, p)
}

func (s *Store) writePair(name string, p Pair) error {
	if err := writeFile(s.Path(name+".key"), p.Key); err != nil {
		return err
	}
	return writeFile(s.Path(name+".crt"), p.Cert)
}

// Sign returns a new key and a certificate for it, which is valid for leafLife.
func (a *Authority) Sign(leaf Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	t := template(leaf.CommonName, a.now(), leafLife)
	t.Subject.Organization = leaf.Organizations
	t.KeyUsage = x509.KeyUsageDigitalSignature
	for _, h := range leaf.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	if len(leaf.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if len(leaf.Hosts) == 0 || leaf.Client {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key)
}

func (s *Store) authority(name, commonName string) (*Authority, error) {
	a := &Authority{now: s.now}
	certPEM, err := os.ReadFile(s.Path(name + ".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		p, merr := newAuthority(commonName, s.now())
		if merr != nil {
			return nil, merr
		}
		if merr := s.writePair(name, p); merr != nil {
			return nil, merr
		}
		certPEM, err = p.Cert, nil
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(s.Path(name + ".key"))
	if err != nil {
		return nil, err
	}
	a.CertPEM = certPEM
	if a.cert, a.key, err = decode(certPEM, keyPEM); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path(name), err)
	}
	return a, nil
}

func newAuthority(commonName string, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	t := template(commonName, now, caLife)
	t.IsCA = true
	t.BasicConstraintsValid = true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key)
}

// serviceAccountKey creates sa.key and sa.pub.
func (s *Store) serviceAccountKey() error {
	if _, err := os.Stat(s.Path("sa.pub")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writeFile(s.Path("sa.key"), pemBlock("EC PRIVATE KEY", private)); err != nil {
		return err
	}
	return writeFile(s.Path("sa.pub"), pemBlock("PUBLIC KEY", public))
}

func template(commonName string, now time.Time, life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(life),
	}
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	k, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pemBlock("CERTIFICATE", der), Key: pemBlock("EC PRIVATE KEY", k)}, nil
}

func decode(certPEM, keyPEM []byte) (*x509.Certificate, crypto.Signer, error) {
	c, _ := pem.Decode(certPEM)
	k, _ := pem.Decode(keyPEM)
	if c == nil || k == nil {
		return nil, nil, errors.New("not PEM")
	}
	cert, err := x509.ParseCertificate(c.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(k.Bytes)
	return cert, key, err
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFile replaces a file atomically, so that a crash leaves the old or the new one.
func writeFile(path string, data []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
