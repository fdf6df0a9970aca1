package kube

import (
	"net/http"
	"net/url"
)

// sharedIdle is how many idle connections to the API server a Shared keeps.
const sharedIdle = 32

// Shared makes clients of one cluster for several users, which share connections. Safe
// for concurrent use.
type Shared struct {
	base Client
}

// Share returns a Shared for the cluster of c. It has nothing of c's credential.
func (c *Client) Share() (*Shared, error) {
	cfg := Config{
		Server: c.cfg.Server, CA: c.cfg.CA, ServerName: c.cfg.ServerName, Insecure: c.cfg.Insecure,
		Proxy: c.cfg.Proxy, Source: "the request",
	}
	server, err := url.Parse(cfg.Server)
	if err != nil {
		return nil, badConfig(c.cfg.Source, err)
	}
	t, err := transport(&cfg, server)
	if err != nil {
		return nil, badConfig(c.cfg.Source, err)
	}
	t.MaxIdleConnsPerHost = sharedIdle
	return &Shared{Client{
		cfg: &cfg, read: c.read, agent: c.agent, http: &http.Client{Transport: t, Timeout: requestTimeout},
	}}, nil
}

// Client returns a client that authenticates with the token. namespace is that of the
// user's jobs.
func (s *Shared) Client(token, namespace string) *Client {
	c := s.base
	cfg := *c.cfg
	cfg.Token, cfg.Namespace = token, namespace
	c.cfg = &cfg
	return &c
}
