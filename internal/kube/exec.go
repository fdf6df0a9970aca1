package kube

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/stdio"
)

// ExecConfig is a kubeconfig's credential plugin: a program that prints an
// ExecCredential (client.authentication.k8s.io).
type ExecConfig struct {
	APIVersion string   `json:"apiVersion"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Env        []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	InstallHint string `json:"installHint"`

	dir string // directory of the kubeconfig, to which a relative Command refers
}

type execCredential struct {
	Status struct {
		Expires time.Time `json:"expirationTimestamp"`
		Token   string    `json:"token"`
		Cert    string    `json:"clientCertificateData"`
		Key     string    `json:"clientKeyData"`
	} `json:"status"`
}

// run runs the credential plugin and returns what it printed. The plugin's own
// messages go to p.Err.
func (e *ExecConfig) run(p *stdio.Process, source string) (*execCredential, error) {
	name := e.Command
	if strings.Contains(name, "/") {
		name = absolute(e.dir, name)
	}
	cmd := exec.Command(name, e.Args...)
	cmd.Env = p.Environ()
	for _, v := range e.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf(
		`KUBERNETES_EXEC_INFO={"apiVersion":%q,"kind":"ExecCredential","spec":{"interactive":false}}`, e.APIVersion))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, p.Err
	if err := cmd.Run(); err != nil {
		return nil, &Error{Kind: BadConfig, Cause: err, Message: strings.TrimSpace(fmt.Sprintf(
			"kubeconfig %s: credential plugin %s: %v. %s", source, e.Command, err, e.InstallHint))}
	}
	cred := &execCredential{}
	if err := json.Unmarshal(out.Bytes(), cred); err != nil {
		return nil, badConfig(source, fmt.Errorf("credential plugin %s: %w", e.Command, err))
	}
	return cred, nil
}

// pluginTransport sends requests with the credential of a plugin. It runs the
// plugin again when the credential has expired. It also does so when the server answers
// 401 (Unauthorized), and then sends the request once more. Safe for concurrent use.
type pluginTransport struct {
	next   *http.Transport
	config *ExecConfig
	source string
	p      *stdio.Process

	mu      sync.Mutex
	current *credential // nil: the plugin has not been run
}

// credential is the output of one run of a plugin. It does not change.
type credential struct {
	token   string
	cert    *tls.Certificate // nil: none
	expires time.Time        // zero: unknown
}

// withPlugin returns a transport that adds the credentials of cfg's plugin and sends by
// next. It runs the plugin once, so that a broken plugin is reported immediately.
func withPlugin(next *http.Transport, cfg *Config, p *stdio.Process) (*pluginTransport, error) {
	t := &pluginTransport{next: next, config: cfg.Exec, source: cfg.Source, p: p}
	next.TLSClientConfig.GetClientCertificate = t.clientCertificate
	_, err := t.credential(nil)
	return t, err
}

// credential returns a credential that has not expired and is not the rejected one.
func (t *pluginTransport) credential(rejected *credential) (*credential, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.current; c != nil && c != rejected && (c.expires.IsZero() || t.p.Now().Before(c.expires)) {
		return c, nil
	}
	got, err := t.config.run(t.p, t.source)
	if err != nil {
		return nil, err
	}
	c := &credential{token: got.Status.Token, expires: got.Status.Expires}
	if got.Status.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(got.Status.Cert), []byte(got.Status.Key))
		if err != nil {
			return nil, badConfig(t.source, fmt.Errorf("credential plugin %s: %w", t.config.Command, err))
		}
		c.cert = &pair
	}
	if t.current != nil && (t.current.cert != nil || c.cert != nil) {
		t.next.CloseIdleConnections() // they use the old certificate
	}
	t.current = c
	return c, nil
}

// clientCertificate implements tls.Config.GetClientCertificate.
func (t *pluginTransport) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch static := t.next.TLSClientConfig.Certificates; {
	case t.current != nil && t.current.cert != nil:
		return t.current.cert, nil
	case len(static) > 0:
		return &static[0], nil
	}
	return &tls.Certificate{}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *pluginTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.credential(nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(authorized(req, c.token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be reused
	_ = resp.Body.Close()
	if c, err = t.credential(c); err != nil {
		return nil, err
	}
	again := authorized(req, c.token)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(again)
}

// authorized returns a copy of the request that carries the token.
func authorized(req *http.Request, token string) *http.Request {
	out := req.Clone(req.Context())
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	return out
}
