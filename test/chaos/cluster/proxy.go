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
	"sync/atomic"
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
	// CutAfter: a watch is cut after that time; 0: not.
	CutAfter time.Duration
	// StallAfter and Stall: after that time a watch delivers nothing for that long.
	StallAfter, Stall time.Duration
}

// Request is what the proxy decides by.
type Request struct {
	Write, Watch bool
	Method, Path string
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

// Alter makes trouble of requests throughout, also while Set makes other trouble, which then
// comes first. nil: of none.
func (l Proxies) Alter(trouble func(Request) Trouble) {
	for _, p := range l {
		p.mu.Lock()
		p.alter = trouble
		p.mu.Unlock()
	}
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

	whose  string // whose requests these are, in the counts
	tally  *tally
	server *http.Server
	up     *httputil.ReverseProxy

	mu      sync.Mutex
	trouble func(Request) Trouble
	alter   func(Request) Trouble // throughout
	cut     context.Context       // ends the watches
	cutAll  context.CancelFunc
	hits    int
}

// newProxy starts a proxy for the client of a kubeconfig, and writes another kubeconfig
// with which the same client uses the proxy. The tally counts the answers that it alters.
func newProxy(from, to, whose string, t *tally) (*Proxy, error) {
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
	p := &Proxy{URL: "https://" + l.Addr().String(), whose: whose, tally: t}
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
	if p.trouble != nil {
		if t := p.trouble(r); t != (Trouble{}) {
			p.hits++
			return t, p.cut
		}
	}
	if p.alter != nil {
		return p.alter(r), p.cut
	}
	return Trouble{}, p.cut
}

// ServeHTTP forwards a request, or lets it fail.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := Request{Write: r.Method != http.MethodGet, Watch: r.URL.Query().Has("watch"), Method: r.Method,
		Path: r.URL.Path}
	t, cut := p.decide(q)
	if t.Delay > 0 {
		select {
		case <-time.After(t.Delay):
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case t.Gone && q.Watch:
		p.count(q, t)
		fail(w, http.StatusGone, "Expired")
	case q.Watch && t.Status == 0 && !t.Reset:
		p.watch(cut, w, r, q, t)
	case t.Status == 0 && !t.Reset:
		p.count(q, t)
		p.up.ServeHTTP(w, r)
	default:
		p.refuse(w, r, q, t)
	}
}

// refuse answers with an error, before or after the API server has handled the request.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, q Request, t Trouble) {
	lost := true
	if t.After {
		d := &discard{header: http.Header{}}
		p.up.ServeHTTP(d, r)
		lost = d.code < http.StatusBadRequest // otherwise nothing was done, and nothing is lost
	}
	if lost {
		p.count(q, t)
	}
	if t.Reset {
		panic(http.ErrAbortHandler)
	}
	fail(w, t.Status, reasons[t.Status])
}

// watch forwards a watch until it ends, its client ends, or cut ends.
func (p *Proxy) watch(cut context.Context, w http.ResponseWriter, r *http.Request, q Request, t Trouble) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var ended atomic.Bool
	end := func() {
		if r.Context().Err() == nil && !ended.Swap(true) {
			p.count(q, Trouble{CutAfter: 1})
		}
		cancel()
	}
	defer context.AfterFunc(cut, end)()
	if t.CutAfter > 0 {
		defer time.AfterFunc(t.CutAfter, end).Stop()
	}
	if t.Stall > 0 {
		s := &stalling{ResponseWriter: w}
		defer time.AfterFunc(t.StallAfter, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			select {
			case <-time.After(t.Stall):
				p.count(q, t)
			case <-ctx.Done():
			}
		}).Stop()
		w = s
	}
	p.up.ServeHTTP(w, r.WithContext(ctx))
}

// stalling delivers nothing while its mutex is held.
type stalling struct {
	http.ResponseWriter
	mu sync.Mutex
}

func (s *stalling) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush.
func (s *stalling) Unwrap() http.ResponseWriter { return s.ResponseWriter }

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
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d *discard) WriteHeader(code int)        { d.code = code }
