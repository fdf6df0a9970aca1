package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

func dial(port uint16) (net.Conn, error) {
	return net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), eventually.Timeout)
}

// getAs requests the pods from the kubelet API with a certificate of that name, and returns the
// status code.
func getAs(t *testing.T, addr, name, organization string) int {
	t.Helper()
	store, err := pki.Open(filepath.Join(state, "pki"), time.Now, pki.LeafLife)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pki.Leaf{CommonName: name}
	if organization != "" {
		leaf.Organizations = []string{organization}
	}
	if err := store.Write("e2e-"+name, store.CA, leaf); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(state, "pki", "e2e-"+name)
	pair, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(store.CA.CertPEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://" + addr + "/pods")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
