package loginnode_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/oidc"
)

// provider is a small OpenID provider with the device flow (RFC 8628).
type provider struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu      sync.Mutex
	answers []string // errors before the token
	token   func(map[string]any) string
	claims  map[string]any
	polls   []time.Time
	url     string // shown to the user
}

func newProvider(t *testing.T) *provider {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, code int, what any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(what)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "token_endpoint": p.URL + "/token", "authorization_endpoint": p.URL + "/auth",
			"device_authorization_endpoint": p.URL + "/device", "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "berth" || !strings.Contains(r.FormValue("scope"), "openid") {
			reply(w, 400, map[string]string{"error": "invalid_client"})
			return
		}
		reply(w, 200, map[string]any{
			"device_code": "secret-code", "user_code": "WDJB-MJHT", "verification_uri": p.url, "expires_in": 600, "interval": 1,
		})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.polls = append(p.polls, time.Now())
		if r.FormValue("device_code") != "secret-code" {
			reply(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		if len(p.answers) > 0 {
			reply(w, 400, map[string]string{"error": p.answers[0]})
			p.answers = p.answers[1:]
			return
		}
		reply(w, 200, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.token(p.claims)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	p.url, p.token = p.URL+"/activate", p.signed(key)
	p.claims = map[string]any{
		"iss": p.URL, "aud": "berth", "sub": "1", "preferred_username": "ann",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	return p
}

// signed makes tokens with a key.
func (p *provider) signed(key *ecdsa.PrivateKey) func(map[string]any) string {
	return func(claims map[string]any) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
		if err != nil {
			p.t.Error(err)
			return ""
		}
		text, err := jwt.Signed(s).Claims(claims).Serialize()
		if err != nil {
			p.t.Error(err)
		}
		return text
	}
}

// unsigned returns a token without a signature, with the algorithm "none".
func unsigned(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(body) + "."
}

func (p *provider) login(change ...func(*oidc.Config)) func(*loginnode.Config) {
	return func(c *loginnode.Config) {
		cfg := oidc.Config{Issuer: p.URL, ClientID: "berth"}
		for _, f := range change {
			f(&cfg)
		}
		client, err := oidc.New(cfg)
		if err != nil {
			p.t.Fatal(err)
		}
		c.DeviceLogin = func(ctx context.Context, u *auth.User, notify func(string) error) error {
			return client.Login(ctx, u.Name, notify)
		}
	}
}

// device logs in by keyboard-interactive with Go's client.
func (n *node) device(user string) (*ssh.Client, string, error) {
	var shown strings.Builder
	c, err := ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
		User: user, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
		Auth: []ssh.AuthMethod{ssh.KeyboardInteractive(func(_, instruction string, questions []string, _ []bool) ([]string, error) {
			shown.WriteString(instruction)
			return make([]string, len(questions)), nil
		})},
	})
	return c, shown.String(), err
}

// OpenSSH's client shows address and code, and the login continues by itself once the
// user has logged in at the provider.
func TestDeviceLogin(t *testing.T) {
	have(t, "ssh")
	p := newProvider(t)
	p.answers = []string{"authorization_pending", "slow_down", "authorization_pending"}
	n := start(t, p.login())
	cmd := n.tool("ssh", n.ann(), "-p", n.port(), "-o", "PreferredAuthentications=keyboard-interactive", "-o", "PubkeyAuthentication=no",
		"ann@127.0.0.1", "echo in as $USER")
	for i, a := range cmd.Args {
		switch a {
		case "BatchMode=yes":
			cmd.Args[i] = "BatchMode=no"
		case "LogLevel=ERROR":
			cmd.Args[i] = "LogLevel=INFO"
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "WDJB-MJHT") || !strings.Contains(string(out), p.URL+"/activate") || !strings.Contains(string(out), "in as ann") {
		t.Fatalf("%v: %s", err, out)
	}
	if r := n.audit.find(t, "login"); len(r) != 1 || r[0].Method != "keyboard-interactive" || r[0].User != "ann" {
		t.Errorf("audited as %+v", r)
	}
	if len(p.polls) != 4 {
		t.Errorf("%d polls", len(p.polls))
	}
	// slow_down adds five seconds to the interval (RFC 8628, 3.5).
	if gap := p.polls[3].Sub(p.polls[2]); gap < 5*time.Second {
		t.Errorf("after slow_down the next poll came after %v", gap)
	}
	// Keys still work, too.
	if out := n.output(n.ann(), "echo by key"); out != "by key" {
		t.Error(out)
	}
}

// Tokens that are not for this server, this provider, this time or this user are
// refused.
func TestDeviceLoginRefuses(t *testing.T) {
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) func(*provider) {
		return func(p *provider) { p.claims[name] = value }
	}
	always := func(*oidc.Config) {}
	for name, try := range map[string]struct {
		change func(*provider)
		config func(*oidc.Config)
		user   string
	}{
		"another audience":       {change: with("aud", "other")},
		"another issuer":         {change: with("iss", "https://other.example")},
		"expired":                {change: with("exp", time.Now().Add(-time.Minute).Unix())},
		"another user":           {change: with("preferred_username", "bob")},
		"no name":                {change: with("preferred_username", nil)},
		"a name that is a list":  {change: with("preferred_username", []string{"ann"})},
		"another key":            {change: func(p *provider) { p.token = p.signed(foreign) }},
		"no signature":           {change: func(p *provider) { p.token = unsigned }},
		"no token":               {change: func(p *provider) { p.token = func(map[string]any) string { return "" } }},
		"denied":                 {change: func(p *provider) { p.answers = []string{"access_denied"} }},
		"the code has expired":   {change: func(p *provider) { p.answers = []string{"authorization_pending", "expired_token"} }},
		"not in the group":       {change: with("groups", []string{"guests"}), config: func(c *oidc.Config) { c.Groups = []string{"hpc"} }},
		"an unverified email":    {change: with("email", "ann"), config: func(c *oidc.Config) { c.UsernameClaim = "email" }},
		"an unknown user":        {change: with("preferred_username", "nobody-here"), user: "nobody-here"},
		"an empty name":          {change: with("preferred_username", ""), user: "nobody-here"},
		"a provider that is off": {change: func(p *provider) { p.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			if try.config == nil {
				try.config = always
			}
			n := start(t, p.login(try.config))
			try.change(p)
			user := try.user
			if user == "" {
				user = "ann"
			}
			if c, _, err := n.device(user); err == nil {
				c.Close()
				t.Error("the login succeeded")
			}
			if len(n.audit.find(t, "login-failed")) == 0 {
				t.Error("not audited")
			}
		})
	}
}

// Names can be mapped, and groups required.
func TestDeviceLoginMapsNames(t *testing.T) {
	p := newProvider(t)
	p.claims["email"], p.claims["email_verified"], p.claims["groups"] = "ann@site.example", true, []string{"staff", "hpc"}
	n := start(t, p.login(func(c *oidc.Config) {
		c.UsernameClaim, c.UsernamePattern, c.Groups = "email", regexp.MustCompile(`([a-z]+)@site\.example`), []string{"hpc"}
	}))
	c, _, err := n.device("ann")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for _, email := range []string{"ann@site.example.evil", "x ann@site.example", "ann@siteXexample"} {
		p.mu.Lock()
		p.claims["email"] = email
		p.mu.Unlock()
		if c, _, err := n.device("ann"); err == nil {
			c.Close()
			t.Errorf("%s: the login succeeded", email)
		}
	}
}

// Texts of the provider do not control the terminal.
func TestTextOfProviderIsEscaped(t *testing.T) {
	p := newProvider(t)
	p.url = "http://x/\x1b]52;c;UFdORUQ=\x07\u202e"
	n := start(t, p.login())
	c, shown, err := n.device("ann")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if strings.ContainsAny(shown, "\x1b\x07\u202e") || !strings.Contains(shown, `\x1b]52`) {
		t.Errorf("%q", shown)
	}
}

// A client that disconnects, or waits for too long, uses no resources for long.
func TestDeviceLoginEnds(t *testing.T) {
	p := newProvider(t)
	for range 1000 {
		p.answers = append(p.answers, "authorization_pending")
	}
	n := start(t, p.login(), func(c *loginnode.Config) { c.DeviceGrace = 2 * time.Second })
	if c, _, err := n.device("ann"); err == nil {
		c.Close()
		t.Error("the login succeeded")
	}
	n.server.Close() // waits for every connection
}
