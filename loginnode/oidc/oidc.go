// Package oidc authenticates users at an OpenID provider in a browser: the device flow
// (RFC 8628), whose address and code the SSH client shows.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Config describes the provider, and how its accounts map to users.
type Config struct {
	Issuer       string // URL, which is also in the provider's tokens
	ClientID     string
	ClientSecret string   // "": a public client
	Scopes       []string // beside openid; nil: profile

	// UsernameClaim is the claim with the user's name; "": preferred_username. An email
	// counts only if the provider has verified it.
	UsernameClaim string
	// UsernamePattern must match the whole claim; its one group is the user's name; nil:
	// the claim is the name.
	UsernamePattern *regexp.Regexp
	// Groups, if not empty, are groups of which the claim GroupsClaim ("": groups) must
	// have one.
	Groups      []string
	GroupsClaim string
}

// Check returns an error if the configuration is invalid.
func (c *Config) Check() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("issuer %q is not a URL", c.Issuer)
	case u.Scheme != "https" && u.Hostname() != "127.0.0.1":
		return fmt.Errorf("issuer %s: the URL must be https", c.Issuer)
	case c.ClientID == "":
		return errors.New("no clientID")
	case c.UsernamePattern != nil && c.UsernamePattern.NumSubexp() != 1:
		return errors.New("the pattern of user names must have exactly one group")
	}
	return nil
}

// requestTimeout bounds each request to the provider.
const requestTimeout = 15 * time.Second

// Client authenticates users. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil: not discovered yet
}

// New returns a Client. It contacts the provider at the first login, so that the server
// starts also if the provider is down.
func New(cfg Config) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Scopes == nil {
		cfg.Scopes = []string{"profile"}
	}
	if cfg.UsernameClaim == "" {
		cfg.UsernameClaim = "preferred_username"
	}
	if cfg.GroupsClaim == "" {
		cfg.GroupsClaim = "groups"
	}
	return &Client{cfg: cfg, http: &http.Client{Timeout: requestTimeout}}, nil
}

// find returns the provider, which it discovers with the first call that succeeds.
func (c *Client) find(ctx context.Context) (*oidc.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.provider != nil {
		return c.provider, nil
	}
	// The provider uses the context later to fetch keys, so it is not the login's.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), c.http)
	p, err := oidc.NewProvider(ctx, c.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	c.provider = p
	return p, nil
}

// tick is the interval of checks that the client is still connected.
const tick = 5 * time.Second

// Login has the user log in with a browser. tell shows a text to the client; with an
// empty text it only checks the connection. Login returns nil only if the provider
// confirms that the account is that user's.
func (c *Client) Login(ctx context.Context, user string, tell func(text string) error) error {
	ctx, cancel := context.WithCancel(oidc.ClientContext(ctx, c.http))
	defer cancel()
	p, err := c.find(ctx)
	if err != nil {
		return fmt.Errorf("the provider: %w", err)
	}
	flow := oauth2.Config{
		ClientID: c.cfg.ClientID, ClientSecret: c.cfg.ClientSecret, Endpoint: c.endpoint(p),
		Scopes: append([]string{oidc.ScopeOpenID}, c.cfg.Scopes...),
	}
	device, err := flow.DeviceAuth(ctx, c.secret()...)
	if err != nil {
		return fmt.Errorf("the provider returned no code: %w", err)
	}
	if device == nil || device.DeviceCode == "" || device.UserCode == "" {
		return errors.New("the provider's response has no code")
	}
	if err := tell(invitation(device)); err != nil {
		return err
	}
	token, err := c.poll(ctx, &flow, device, tell)
	if err != nil {
		return err
	}
	return c.check(ctx, p, token, user)
}

// endpoint returns the endpoint with the way in which the client sends its secret.
// Package oauth2 would find that out by a second request, which the provider rejects
// with slow_down.
func (c *Client) endpoint(p *oidc.Provider) oauth2.Endpoint {
	e := p.Endpoint()
	var known struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	e.AuthStyle = oauth2.AuthStyleInHeader // the default of the specification
	if p.Claims(&known) != nil || c.cfg.ClientSecret == "" ||
		len(known.Methods) > 0 && !slices.Contains(known.Methods, "client_secret_basic") {
		e.AuthStyle = oauth2.AuthStyleInParams
	}
	return e
}

// secret returns what a confidential client also sends to the device endpoint.
func (c *Client) secret() []oauth2.AuthCodeOption {
	if c.cfg.ClientSecret == "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("client_secret", c.cfg.ClientSecret)}
}

// invitation returns the text that the client shows. The provider's texts in it cannot
// control the terminal.
func invitation(d *oauth2.DeviceAuthResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Log in at %s\nwith the code %s\n", visible(d.VerificationURI), visible(d.UserCode))
	if d.VerificationURIComplete != "" {
		fmt.Fprintf(&b, "or at %s\n", visible(d.VerificationURIComplete))
	}
	return b.String()
}

// visible removes characters that are not visible.
func visible(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// poll waits for the login, and meanwhile checks that the client is connected.
func (c *Client) poll(
	ctx context.Context,
	flow *oauth2.Config,
	device *oauth2.DeviceAuthResponse,
	tell func(string) error,
) (*oauth2.Token, error) {
	type result struct {
		token *oauth2.Token
		err   error
	}
	results := make(chan result, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer func() {
			if r := recover(); r != nil {
				results <- result{err: fmt.Errorf("panic: %v", r)}
			}
		}()
		t, err := flow.DeviceAccessToken(ctx, device)
		results <- result{t, err}
	}()
	alive := time.NewTicker(tick)
	defer alive.Stop()
	for {
		select {
		case r := <-results:
			return r.token, r.err
		case <-alive.C:
			if err := tell(""); err != nil {
				return nil, fmt.Errorf("the client is gone: %w", err)
			}
		}
	}
}

// check returns an error unless a token is valid for that user.
func (c *Client) check(ctx context.Context, p *oidc.Provider, token *oauth2.Token, user string) error {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return errors.New("the provider returned no ID token")
	}
	// Issuer, audience, expiry and signature; never alg "none".
	id, err := p.Verifier(&oidc.Config{ClientID: c.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return err
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return err
	}
	name, err := c.name(claims)
	if err != nil {
		return err
	}
	if user == "" || name != user {
		return fmt.Errorf("logged in as %q, which is not %q", name, user)
	}
	return c.member(claims)
}

// name returns the user's name from the claims.
func (c *Client) name(claims map[string]any) (string, error) {
	name, _ := claims[c.cfg.UsernameClaim].(string)
	if name == "" {
		return "", fmt.Errorf("the token has no %s", c.cfg.UsernameClaim)
	}
	if verified, _ := claims["email_verified"].(bool); c.cfg.UsernameClaim == "email" && !verified {
		return "", fmt.Errorf("the provider has not verified the email %q", name)
	}
	if c.cfg.UsernamePattern == nil {
		return name, nil
	}
	m := c.cfg.UsernamePattern.FindStringSubmatchIndex(name)
	if m == nil || m[0] != 0 || m[1] != len(name) || m[2] < 0 {
		return "", fmt.Errorf("%s %q does not match the configured pattern", c.cfg.UsernameClaim, name)
	}
	return name[m[2]:m[3]], nil
}

// member returns an error unless the claims have one of the required groups.
func (c *Client) member(claims map[string]any) error {
	if len(c.cfg.Groups) == 0 {
		return nil
	}
	list, _ := claims[c.cfg.GroupsClaim].([]any)
	if slices.ContainsFunc(list, func(g any) bool {
		s, ok := g.(string)
		return ok && slices.Contains(c.cfg.Groups, s)
	}) {
		return nil
	}
	return errors.New("in none of the groups that may log in")
}
