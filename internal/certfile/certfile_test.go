package certfile_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/certfile"
)

// write creates a certificate with that serial number and replaces the named files by its own.
func write(t *testing.T, dir string, serial int64, files ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: private},
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(blocks[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func serial(t *testing.T, c *tls.Certificate) int64 {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.Int64()
}

func TestReplacedFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := certfile.Open(cert, key); err == nil {
		t.Error("no error without files")
	}
	write(t, dir, 1, "tls.crt", "tls.key")
	f, err := certfile.Open(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want int64, failed bool) {
		t.Helper()
		server, err := f.Server(nil)
		if err != nil || serial(t, server) != want {
			t.Errorf("server: certificate %d, %v, want %d", serial(t, server), err, want)
		}
		client, err := f.Client(nil)
		if err != nil || serial(t, client) != want {
			t.Errorf("client: certificate %d, %v, want %d", serial(t, client), err, want)
		}
		if _, err := f.Current(); (err != nil) != failed {
			t.Errorf("error %v, want one: %v", err, failed)
		}
	}
	expect(1, false)
	write(t, dir, 2, "tls.crt", "tls.key")
	expect(2, false)
	write(t, dir, 3, "tls.crt") // the key follows a moment later
	expect(2, true)
	write(t, dir, 4, "tls.crt", "tls.key")
	expect(4, false)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	expect(4, true)
}

func TestFixedCertificateStays(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 7, "tls.crt", "tls.key")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	f := certfile.Fixed(pair)
	if got, err := f.Current(); err != nil || serial(t, got) != 7 {
		t.Errorf("%v %v", got, err)
	}
}
