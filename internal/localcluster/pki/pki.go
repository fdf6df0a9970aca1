// Package pki has the certificates of a local cluster: two CAs (one for servers and
// clients, one for the API server's front proxy), the key that signs ServiceAccount
// tokens, and the leaf certificates signed by the CAs.
//
// The CAs and the key are in files and survive restarts; leaf certificates are cheap. They
// are created at each start, and again while the cluster runs, before they expire.
package pki

import (
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

	"github.com/berth-hpc/berth/internal/durable"
)

const (
	caLife = 20 * 365 * 24 * time.Hour
	// caRenewal is the time before the end of a CA at which it is renewed. Its key stays,
	// so that the previous certificate of the CA verifies new leaves, too, until it expires.
	caRenewal = 3 * 365 * 24 * time.Hour
	// skew allows for clocks that are behind.
	skew = time.Hour
)

// Store is a directory of certificates. Its methods are not safe for concurrent
// use with each other.
type Store struct {
	dir  string
	now  func() time.Time
	life time.Duration

	// CA signs servers and clients, FrontProxy the API server as a client of
	// aggregated APIs and webhooks.
	CA         *Authority
	FrontProxy *Authority
}

// LeafLife is how long leaves are valid if nothing else is configured.
const LeafLife = 366 * 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	CertPEM []byte
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	now     func() time.Time
	life    time.Duration // of leaves
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
// the directory with mode 0700 if it is missing. now is the clock, life how long leaves
// are valid.
func Open(dir string, now func() time.Time, life time.Duration) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, now: now, life: life}
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
	if err := replace(s.Path(name+".key"), p.Key); err != nil {
		return err
	}
	return replace(s.Path(name+".crt"), p.Cert)
}

// Renew signs a leaf again and replaces NAME.crt. NAME.key stays, so that a program that reads
// the files meanwhile finds two that belong together.
func (s *Store) Renew(name string, ca *Authority, leaf Leaf) error {
	data, err := os.ReadFile(s.Path(name + ".key"))
	if err != nil {
		return err
	}
	key, err := decodeKey(data)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(name+".key"), err)
	}
	p, err := ca.signKey(leaf, key)
	if err != nil {
		return err
	}
	return replace(s.Path(name+".crt"), p.Cert)
}

// replace replaces the file of a leaf. After a crash of the machine it may be empty; the next
// start writes it anyway.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// writePair writes a CA.
func (s *Store) writePair(name string, p Pair) error {
	if err := durable.Write(s.Path(name+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return durable.Write(s.Path(name+".crt"), p.Cert, 0o600)
}

// Sign returns a new key and a certificate for it.
func (a *Authority) Sign(leaf Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return a.signKey(leaf, key)
}

func (a *Authority) signKey(leaf Leaf, key *ecdsa.PrivateKey) (Pair, error) {
	t := template(leaf.CommonName, a.now(), a.life)
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
	a := &Authority{now: s.now, life: s.life}
	certPEM, err := os.ReadFile(s.Path(name + ".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		var p Pair
		if p, err = newAuthority(commonName, s.now()); err == nil {
			certPEM, err = p.Cert, s.writePair(name, p)
		}
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
	if s.now().Add(caRenewal).After(a.cert.NotAfter) {
		return a, s.renewAuthority(name, a)
	}
	return a, nil
}

// renewAuthority replaces the certificate of a CA; its key stays.
func (s *Store) renewAuthority(name string, a *Authority) error {
	p, err := selfSign(a.cert.Subject.CommonName, s.now(), a.key)
	if err != nil {
		return err
	}
	if a.cert, _, err = decode(p.Cert, p.Key); err != nil {
		return err
	}
	a.CertPEM = p.Cert
	return durable.Write(s.Path(name+".crt"), p.Cert, 0o600)
}

func newAuthority(commonName string, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return selfSign(commonName, now, key)
}

// selfSign returns the certificate of a CA with that key.
func selfSign(commonName string, now time.Time, key *ecdsa.PrivateKey) (Pair, error) {
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
	if err := durable.Write(s.Path("sa.key"), pemBlock("EC PRIVATE KEY", private), 0o600); err != nil {
		return err
	}
	return durable.Write(s.Path("sa.pub"), pemBlock("PUBLIC KEY", public), 0o600)
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

func decode(certPEM, keyPEM []byte) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	c, _ := pem.Decode(certPEM)
	if c == nil {
		return nil, nil, errNotPEM
	}
	cert, err := x509.ParseCertificate(c.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, err := decodeKey(keyPEM)
	return cert, key, err
}

var errNotPEM = errors.New("not PEM")

func decodeKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	k, _ := pem.Decode(keyPEM)
	if k == nil {
		return nil, errNotPEM
	}
	return x509.ParseECPrivateKey(k.Bytes)
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
