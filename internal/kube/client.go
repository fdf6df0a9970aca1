package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Timeouts of one request: to connect, for the TLS handshake, and in all.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	requestTimeout   = 60 * time.Second
)

// maxResponse bounds the size of a response in bytes, against a faulty server.
const maxResponse = 1 << 30

// Client sends requests to one API server as one user. A request that fails returns an
// *Error, whose message is for the user. Client is safe for concurrent use.
type Client struct {
	cfg   *Config
	http  *http.Client
	read  func(string) ([]byte, error)
	now   func() time.Time
	agent string

	// Warn, if not nil, is called with each warning in a response. Set it before the
	// first request.
	Warn func(text string)
}

// Connect finds the cluster (see Find) and returns a client for it. It sends no request.
// The error is an *Error.
func Connect(p *stdio.Process, explicit string) (*Client, error) {
	cfg, err := Find(p, explicit)
	if err != nil {
		return nil, err
	}
	return New(p, cfg)
}

// New returns a client. It sends no request, but runs the credential plugin if the
// configuration names one.
func New(p *stdio.Process, cfg *Config) (*Client, error) {
	server, err := url.Parse(cfg.Server)
	if err != nil || server.Host == "" {
		return nil, badConfig(cfg.Source, fmt.Errorf("bad server URL %q", cfg.Server))
	}
	c := &Client{
		cfg: cfg, read: p.ReadFile, now: p.Now, agent: "berth/" + build.Version,
		http: &http.Client{Timeout: requestTimeout},
	}
	toServer := func() (http.RoundTripper, error) { return authenticated(p, cfg, server) }
	if cfg.Socket != "" && cfg.Token != "" && cfg.Exec == nil {
		c.http.Transport = withSocket(cfg.Socket, toServer)
		return c, nil
	}
	if c.http.Transport, err = toServer(); err != nil {
		return nil, err
	}
	return c, nil
}

// authenticated returns a transport to the server's address that presents the certificate of
// the configuration, or the credentials of its plugin. The error is an *Error.
func authenticated(p *stdio.Process, cfg *Config, server *url.URL) (http.RoundTripper, error) {
	t, err := transport(cfg, server)
	if err != nil {
		return nil, badConfig(cfg.Source, err)
	}
	if cfg.Exec != nil {
		return withPlugin(t, cfg, p)
	}
	if len(t.TLSClientConfig.Certificates) > 0 && cfg.again != nil {
		return withCertificate(t, cfg.again, p.Now), nil
	}
	return t, nil
}

// Config returns the client's configuration.
func (c *Client) Config() *Config { return c.cfg }

func transport(cfg *Config, server *url.URL) (*http.Transport, error) {
	tc := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure}
	if len(cfg.CA) > 0 {
		tc.RootCAs = x509.NewCertPool()
		if !tc.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, fmt.Errorf("the certificate authority holds no certificate")
		}
	}
	if len(cfg.Cert) > 0 {
		pair, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		tc.Certificates = []tls.Certificate{pair}
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     tc,
		TLSHandshakeTimeout: handshakeTimeout,
		Proxy:               http.ProxyFromEnvironment,
		// HTTP/1.1 only: a command sends one or two requests, one after the other.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		// On the loopback interface, compression costs more than it saves.
		DisableCompression: loopback(server.Hostname()),
		ReadBufferSize:     64 << 10,
	}
	if t.DisableCompression {
		// The post-quantum key exchange protects recorded traffic, and the loopback
		// interface has no recorder. It is the most expensive part of a handshake.
		tc.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	if cfg.Proxy != "" {
		proxy, err := url.Parse(cfg.Proxy)
		if err != nil {
			return nil, fmt.Errorf("proxy-url: %w", err)
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	return t, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Get reads the object or list at path into out; nil discards the response.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.do(ctx, http.MethodGet, path, query, "", nil, out)
}

// Post sends in as JSON and reads the response into out; nil discards it.
func (c *Client) Post(ctx context.Context, path string, query url.Values, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, query, "application/json", body, out)
}

// MergePatch changes the object at path by the JSON merge patch in (RFC 7396), and reads
// the changed object into out; nil discards it.
func (c *Client) MergePatch(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPatch, path, nil, "application/merge-patch+json", body, out)
}

// Delete deletes the object at path.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, nil, "", nil, nil)
}

// GetTable reads a list into out, a metav1.Table with the server's printer columns.
func (c *Client) GetTable(ctx context.Context, path string, out any) error {
	return c.send(ctx, http.MethodGet, path, nil, http.Header{
		"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}, nil, out)
}

func (c *Client) do(
	ctx context.Context,
	method, path string,
	query url.Values,
	kind string,
	body []byte,
	out any,
) error {
	h := http.Header{"Accept": {"application/json"}}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	return c.send(ctx, method, path, query, h, body, out)
}

func (c *Client) send(
	ctx context.Context,
	method, path string,
	query url.Values,
	h http.Header,
	body []byte,
	out any,
) error {
	u := strings.TrimSuffix(c.cfg.Server, "/") + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = h
	req.Header.Set("User-Agent", c.agent)
	if err := c.authorize(req); err != nil {
		return err
	}
	resp, err := c.doWithRetry(c.http, req)
	if err != nil {
		return c.transportError(err)
	}
	defer resp.Body.Close()
	if c.Warn != nil {
		for _, h := range resp.Header.Values("Warning") {
			if text, ok := warningText(h); ok {
				c.Warn(text)
			}
		}
	}
	return c.decodeResponse(resp, out)
}

// warningText returns the text of an API server's Warning header: 299 AGENT "TEXT".
func warningText(h string) (string, bool) {
	code, rest, _ := strings.Cut(h, " ")
	_, quoted, ok := strings.Cut(rest, " ")
	if code != "299" || !ok {
		return "", false
	}
	text, err := strconv.Unquote(quoted)
	return text, err == nil
}

// decodeResponse decodes a response into out, or returns the error that it reports. It
// reads the whole response, so that the connection can be reused.
func (c *Client) decodeResponse(resp *http.Response, out any) error {
	data, err := readBody(resp)
	if err != nil {
		return c.transportError(err)
	}
	if resp.StatusCode >= 300 {
		return c.statusError(resp.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	if err := unmarshal(data, out); err != nil {
		return &Error{Kind: Other, Code: resp.StatusCode, Cause: err,
			Message: fmt.Sprintf("%s sent an answer that cannot be decoded: %v", c.cfg.Server, err)}
	}
	return nil
}

func readBody(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n < maxResponse {
		data := make([]byte, n)
		_, err := io.ReadFull(resp.Body, data)
		return data, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxResponse))
}

// Decoder is implemented by types of responses that decode themselves faster than
// encoding/json does.
type Decoder interface{ Decode(data []byte) error }

func unmarshal(data []byte, out any) error {
	if d, ok := out.(Decoder); ok {
		return d.Decode(data)
	}
	return json.Unmarshal(data, out)
}

// authorize adds the token, or the user name and password, to a request.
func (c *Client) authorize(req *http.Request) error {
	token := c.cfg.Token
	if c.cfg.TokenFile != "" {
		data, err := c.read(c.cfg.TokenFile)
		if err != nil {
			return &Error{Kind: BadConfig, Cause: err,
				Message: fmt.Sprintf("cannot read the token of %s: %v", c.cfg.Source, err)}
		}
		token = strings.TrimSpace(string(data))
	}
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case c.cfg.Username != "":
		req.SetBasicAuth(c.cfg.Username, c.cfg.Password)
	}
	return nil
}
