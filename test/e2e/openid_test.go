package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"

	"github.com/go-jose/go-jose/v4"

	"github.com/berth-hpc/berth/internal/eventually"
)

// openIDProvider is an issuer of tokens, with discovery and keys over HTTPS.
type openIDProvider struct {
	t      *testing.T
	server *httptest.Server
	key    *ecdsa.PrivateKey
	away   atomic.Bool
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newOpenIDProvider(t *testing.T) *openIDProvider {
	p := &openIDProvider{t: t, key: newKey(t)}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	return p
}

func (p *openIDProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch {
	case p.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		answer = object{"issuer": p.server.URL, "jwks_uri": p.server.URL + "/keys", "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"}}
	case r.URL.Path == "/keys":
		answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// config returns the AuthenticationConfiguration of a cluster that trusts the provider.
func (p *openIDProvider) config() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	indented := strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", "\n      ")
	file := filepath.Join(p.t.TempDir(), "authentication.yaml")
	text := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [berth]
    certificateAuthority: |
      %s
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`, p.server.URL, indented)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// token returns a token with the claims of a user, changed by change.
func (p *openIDProvider) token(key *ecdsa.PrivateKey, change object) string {
	claims := object{"iss": p.server.URL, "aud": "berth", "sub": "anna", "groups": []string{"users"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range change {
		claims[name] = v
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// TestOpenIDTokens: slurmrestd serves the owner of a token of an OpenID provider as the user
// whose identity the token names, also while the provider is away. Nobody becomes another
// user, or a member of a group of the cluster, by what a token says.
func TestOpenIDTokens(t *testing.T) {
	t.Parallel()
	p := newOpenIDProvider(t)
	d := &database{start(t, "--nodes", "1", "--cpus", "1", "--authentication-config", p.config()), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	create := func(path string, o object) {
		t.Helper()
		if code, text := admin.do(t, http.MethodPost, path, o); code != http.StatusCreated {
			t.Fatalf("%d %s", code, text)
		}
	}
	role := func(kind, name string) object {
		return object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
	}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	for _, name := range []string{"anna", "ben"} {
		create("/apis/berth.hpc/v1alpha1/users", object{"apiVersion": "berth.hpc/v1alpha1", "kind": "User", "metadata": object{"name": name},
			"spec": object{"uid": 4711 + len(name), "gid": 4711, "namespace": "user-" + name, "home": "/tmp", "identities": []string{"oidc:" + name}}})
	}
	create("/api/v1/namespaces", object{"metadata": object{"name": "user-anna"}})
	create(rbac+"namespaces/user-anna/rolebindings", object{"metadata": object{"name": "owner"}, "roleRef": role("ClusterRole", "berth-user"),
		"subjects": []object{role("User", "oidc:anna")}})
	create(rbac+"clusterrolebindings", object{"metadata": object{"name": "of-the-provider"}, "roleRef": role("ClusterRole", "berth-queue"),
		"subjects": []object{role("Group", "oidc:users")}})

	_, send := d.restOfRoot()
	as := func(token, method, path, body string, more ...string) (int, string) {
		t.Helper()
		return send(method, path, body, append([]string{"Authorization", "Bearer " + token}, more...)...)
	}
	anna := p.token(p.key, nil)
	const jobs = "/slurm/v0.0.38/jobs"
	eventually.Holds(t, "anna's token is accepted", func() bool {
		code, _ := as(anna, http.MethodGet, jobs, "", "X-SLURM-USER-NAME", "anna")
		return code == http.StatusOK
	})
	submission := `{"script":"#!/bin/sh\ntrue\n","job":{"name":"byopenid","environment":{"PATH":"/bin"},"current_working_directory":"/tmp"}}`
	if code, text := as(anna, http.MethodPost, "/slurm/v0.0.38/job/submit", submission); code != http.StatusOK {
		t.Errorf("submission: %d %s", code, text)
	}
	if _, out, _ := d.run("squeue", "-h", "-t", "all", "-n", "byopenid", "-o", "%u"); strings.TrimSpace(out) != "anna" {
		t.Errorf("the job belongs to %q", out)
	}
	for name, c := range map[string]object{
		"expired":            {"exp": time.Now().Add(-time.Hour).Unix()},
		"expired just now":   {"exp": time.Now().Add(-time.Second).Unix()},
		"of an hour ahead":   {"nbf": time.Now().Add(time.Hour).Unix(), "exp": time.Now().Add(2 * time.Hour).Unix()},
		"for others":         {"aud": "another service"},
		"of another issuer":  {"iss": "https://example.org"},
		"of a stranger":      {"sub": "mallory", "groups": []string{}},
		"of the scheduler":   {"sub": "system:berth-scheduler", "groups": []string{}},
		"of administrators":  {"sub": "root", "groups": []string{"system:masters", "berth:users"}},
		"without a user":     {"sub": "", "groups": []string{}},
		"of a user's prefix": {"sub": "oidc:anna", "groups": []string{}},
	} {
		code, text := as(p.token(p.key, c), http.MethodGet, jobs, "")
		if code == http.StatusOK {
			t.Errorf("a token %s is accepted: %s", name, text)
		}
	}
	skewed := object{"iat": time.Now().Add(time.Minute).Unix(), "nbf": time.Now().Add(time.Minute).Unix()}
	if code, text := as(p.token(p.key, skewed), http.MethodGet, jobs, ""); code != http.StatusOK {
		t.Errorf("the clock of the provider is a minute ahead: %d %s", code, text)
	}
	if code, _ := as(p.token(newKey(t), nil), http.MethodGet, jobs, ""); code != http.StatusUnauthorized {
		t.Errorf("a token that somebody else signed: %d", code)
	}
	ben := p.token(p.key, object{"sub": "ben"})
	if code, _ := as(ben, http.MethodGet, jobs, "", "X-SLURM-USER-NAME", "anna"); code != http.StatusUnauthorized {
		t.Errorf("ben's token with anna's name: %d", code)
	}
	if code, text := as(ben, http.MethodPost, "/slurm/v0.0.38/job/submit", submission); code == http.StatusOK {
		t.Errorf("ben submits into a namespace that he has no rights in: %s", text)
	}
	p.away.Store(true)
	if code, text := as(p.token(p.key, nil), http.MethodGet, jobs, ""); code != http.StatusOK {
		t.Errorf("the provider is away: %d %s", code, text)
	}
}
