package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Trouble is what happens to one request. The zero value is nothing.
type Trouble struct {
	Delay  time.Duration // before anything else
	Status int           // the answer; 0: that of the API server, or the connection is reset
	Reset  bool
	// After: the API server has handled the request before it fails.
	After bool
	Gone  bool // a watch ends with "410 Gone"
}

// Request is what the proxy decides by.
type Request struct {
	Write, Watch bool
	Path         string
}

// Proxies are the proxies of clients to which the same happens.
type Proxies []*Proxy

// Set makes trouble of requests from now on; nil: of none. It returns how many requests
// the trouble before it has hit.
func (l Proxies) Set(trouble func(Request) Trouble) (hits int) {
	for _, p := range l {
		hits += p.set(trouble)
	}
	return hits
}

// CutWatches ends every watch that is open.
func (l Proxies) CutWatches() {
	for _, p := range l {
		p.cutWatches()
	}
}

// Proxy is between clients and the API server. It is safe for concurrent use.
type Proxy struct {
	URL string

	server *http.Server
	up     *httputil.ReverseProxy

	mu      sync.Mutex
	trouble func(Request) Trouble
	cut     context.Context // ends the watches
	cutAll  context.CancelFunc
	hits    int
}

// newProxy starts a proxy for the client of a kubeconfig, and writes another kubeconfig
// with which the same client uses the proxy.
func newProxy(from, to string) (*Proxy, error) {
	in := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: from}, nil)
	cfg, err := in.ClientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := in.Namespace()
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	cert, err := selfSigned()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "https://" + l.Addr().String()}
	p.cut, p.cutAll = context.WithCancel(context.Background())
	p.up = httputil.NewSingleHostReverseProxy(target)
	quiet := log.New(io.Discard, "", 0)
	p.up.Transport, p.up.FlushInterval, p.up.ErrorLog = transport, -1, quiet
	p.up.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	p.server = &http.Server{Handler: p, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.ServeTLS(l, "", "") }()
	out := clientcmdapi.NewConfig()
	out.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.URL, InsecureSkipTLSVerify: true}
	out.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", Namespace: namespace}
	out.CurrentContext = "proxy"
	return p, clientcmd.WriteToFile(*out, to)
}

// selfSigned returns a certificate that nobody checks.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (p *Proxy) set(trouble func(Request) Trouble) (hits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble, hits, p.hits = trouble, p.hits, 0
	return hits
}

func (p *Proxy) cutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAll()
	p.cut, p.cutAll = context.WithCancel(context.Background())
}

func (p *Proxy) close() { _ = p.server.Close() }

// decide returns what happens to the request, and the context that ends watches.
func (p *Proxy) decide(r Request) (Trouble, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble == nil {
		return Trouble{}, p.cut
	}
	t := p.trouble(r)
	if t != (Trouble{}) {
		p.hits++
	}
	return t, p.cut
}

// ServeHTTP forwards a request, or lets it fail.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := Request{Write: r.Method != http.MethodGet, Watch: r.URL.Query().Has("watch"), Path: r.URL.Path}
	t, cut := p.decide(q)
	if t.Delay > 0 {
		select {
		case <-time.After(t.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if q.Watch {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(cut, cancel)()
		r = r.WithContext(ctx)
	}
	switch {
	case t.Gone && q.Watch:
		fail(w, http.StatusGone, "Expired")
	case t.Status == 0 && !t.Reset:
		p.up.ServeHTTP(w, r)
	case t.After:
		p.up.ServeHTTP(&discard{header: http.Header{}}, r)
		fallthrough
	default:
		if t.Reset {
			panic(http.ErrAbortHandler)
		}
		fail(w, t.Status, reasons[t.Status])
	}
}

// reasons are metav1.StatusReason by status code.
var reasons = map[int]string{409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	504: "Timeout"}

// fail answers like the API server.
func fail(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected: %s","reason":%q,"code":%d}`,
		reason, reason, code)
}

// discard takes an answer that nobody sees.
type discard struct {
	header http.Header
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d *discard) WriteHeader(int)             {}
