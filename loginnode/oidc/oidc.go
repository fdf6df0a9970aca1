// Package oidc lets people log in at an OpenID provider in their browser: the
// device flow (RFC 8628), whose address and code the SSH client shows.
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

// Config says which provider, and who its people are here.
type Config struct {
	Issuer       string // URL, which the provider's tokens name as well
	ClientID     string
	ClientSecret string   // "": a public client
	Scopes       []string // beside openid; nil: profile

	// UsernameClaim holds the user's name; "": preferred_username. An email
	// counts only when the provider says that it is verified.
	UsernameClaim string
	// UsernamePattern has one group, which is the user's name, and matches the
	// claim from end to end; nil: the claim is the name.
	UsernamePattern *regexp.Regexp
	// Groups, if not empty, are those of whose GroupsClaim ("": groups) one is
	// demanded.
	Groups      []string
	GroupsClaim string
}

// Check finds what is wrong with the configuration.
func (c *Config) Check() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("issuer %q is not a URL", c.Issuer)
	case u.Scheme != "https" && u.Hostname() != "127.0.0.1":
		return fmt.Errorf("issuer %s: only https can be believed", c.Issuer)
	case c.ClientID == "":
		return errors.New("no clientID")
	case c.UsernamePattern != nil && c.UsernamePattern.NumSubexp() != 1:
		return errors.New("the pattern of names has to have one group")
	}
	return nil
}

// requestTimeout bounds each request to the provider.
const requestTimeout = 15 * time.Second

// Client logs people in. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil: not found yet
}

// New makes a Client. The provider is asked at the first login: one that is
// down when the server starts is no reason not to start.
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

func (c *Client) find(ctx context.Context) (*oidc.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.provider != nil {
		return c.provider, nil
	}
	// The provider keeps the context for its keys, so it is not the login's.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), c.http)
	p, err := oidc.NewProvider(ctx, c.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	c.provider = p
	return p, nil
}

// tick is how often a client that waits is shown to be waited for.
const tick = 5 * time.Second

// Login has the user log in elsewhere. tell shows a text to the client, and an
// empty one sees whether it is still there. It returns nil only if the provider
// has said that whoever logged in is that user.
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
		return fmt.Errorf("the provider gives no code: %w", err)
	}
	if device == nil || device.DeviceCode == "" || device.UserCode == "" {
		return errors.New("the provider's answer has no code")
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

// endpoint also says how the client shows its secret. Package oauth2 would find
// out by asking twice, and be told to slow down.
func (c *Client) endpoint(p *oidc.Provider) oauth2.Endpoint {
	e := p.Endpoint()
	var known struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	e.AuthStyle = oauth2.AuthStyleInHeader // what a provider takes that says nothing
	if p.Claims(&known) != nil || c.cfg.ClientSecret == "" ||
		len(known.Methods) > 0 && !slices.Contains(known.Methods, "client_secret_basic") {
		e.AuthStyle = oauth2.AuthStyleInParams
	}
	return e
}

// secret is what a confidential client also sends to the device endpoint.
func (c *Client) secret() []oauth2.AuthCodeOption {
	if c.cfg.ClientSecret == "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("client_secret", c.cfg.ClientSecret)}
}

// invitation is what the client shows. What the provider has written does not
// steer the terminal.
func invitation(d *oauth2.DeviceAuthResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Log in at %s\nwith the code %s\n", visible(d.VerificationURI), visible(d.UserCode))
	if d.VerificationURIComplete != "" {
		fmt.Fprintf(&b, "or at %s\n", visible(d.VerificationURIComplete))
	}
	return b.String()
}

// visible keeps what cannot be seen from a terminal.
func visible(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// poll waits until somebody has logged in, and sees meanwhile that the client is there.
func (c *Client) poll(ctx context.Context, flow *oauth2.Config, device *oauth2.DeviceAuthResponse, tell func(string) error) (*oauth2.Token, error) {
	type answer struct {
		token *oauth2.Token
		err   error
	}
	answers := make(chan answer, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer func() {
			if r := recover(); r != nil {
				answers <- answer{err: fmt.Errorf("panic: %v", r)}
			}
		}()
		t, err := flow.DeviceAccessToken(ctx, device)
		answers <- answer{t, err}
	}()
	alive := time.NewTicker(tick)
	defer alive.Stop()
	for {
		select {
		case a := <-answers:
			return a.token, a.err
		case <-alive.C:
			if err := tell(""); err != nil {
				return nil, fmt.Errorf("the client is gone: %w", err)
			}
		}
	}
}

// check decides whether a token is one for that user.
func (c *Client) check(ctx context.Context, p *oidc.Provider, token *oauth2.Token, user string) error {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return errors.New("the provider has given no ID token")
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

// name is the user's name by the claims.
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
		return "", fmt.Errorf("%s %q is not of the form that is asked for", c.cfg.UsernameClaim, name)
	}
	return name[m[2]:m[3]], nil
}

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
