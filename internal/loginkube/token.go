package loginkube

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Files of a credential, in the directory that replaces %d in a text.
const (
	fileToken      = "token"
	fileKubeconfig = "kubeconfig"
)

// Credential authenticates a user's commands to the API server.
type Credential struct {
	Files map[string]string
	Env   []string
	Renew time.Time

	namespace string // the user's
}

type tokenRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ExpirationSeconds int64 `json:"expirationSeconds"`
	} `json:"spec"`
	Status struct {
		Token      string    `json:"token"`
		Expiration time.Time `json:"expirationTimestamp"`
	} `json:"status"`
}

// Credential requests a token of the user's ServiceAccount. uid is the one with which
// the user has logged in: if the name has another uid in the cluster, it is another
// user. A user that the cluster does not have, or that is disabled, gets no token; the next request is a
// minute later. With an error it still returns the future environment.
func (c *Cluster) Credential(ctx context.Context, user string, uid int) (*Credential, error) {
	cred := &Credential{Env: []string{"KUBECONFIG=%d/" + fileKubeconfig}}
	if err := c.users.fresh(); err != nil {
		return cred, err
	}
	u, ok := c.users.get(user)
	if !ok || u.Spec.Namespace == "" || u.Spec.Disabled {
		return &Credential{Renew: time.Now().Add(time.Minute)}, nil
	}
	if u.Spec.UID != int64(uid) {
		return nil, fmt.Errorf(
			"user %s has logged in with uid %d, the cluster's User %s has %d",
			user,
			uid,
			user,
			u.Spec.UID,
		)
	}
	var t tokenRequest
	t.APIVersion, t.Kind = "authentication.k8s.io/v1", "TokenRequest"
	t.Spec.ExpirationSeconds = int64(c.opts.TokenLife.Seconds())
	path := "/api/v1/namespaces/" + url.PathEscape(
		u.Spec.Namespace,
	) + "/serviceaccounts/" + v1alpha1.ServiceAccountName + "/token"
	asked := time.Now()
	if err := c.client.Post(ctx, path, nil, &t, &t); err != nil {
		return cred, fmt.Errorf("token of %s: %w", user, err)
	}
	cred.Files = map[string]string{fileToken: t.Status.Token, fileKubeconfig: c.kubeconfig(user, u.Spec.Namespace)}
	cred.namespace = u.Spec.Namespace
	cred.Renew = asked.Add(t.Status.Expiration.Sub(asked) / 2)
	return cred, nil
}

// kubeconfig names the token's file, so that a renewed token is seen by
// whatever has read the kubeconfig before.
func (c *Cluster) kubeconfig(user, namespace string) string {
	cfg := c.client.Config()
	server := c.opts.Server
	if server == "" {
		server = cfg.Server
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"apiVersion: v1\nkind: Config\ncurrent-context: berth\nclusters:\n- name: berth\n  cluster:\n    server: %s\n",
		server,
	)
	if len(cfg.CA) > 0 {
		fmt.Fprintf(&b, "    certificate-authority-data: %s\n", base64.StdEncoding.EncodeToString(cfg.CA))
	}
	fmt.Fprintf(&b, "users:\n- name: %q\n  user:\n    tokenFile: %%d/%s\n", user, fileToken)
	fmt.Fprintf(
		&b,
		"contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: %q\n    namespace: %q\n",
		user,
		namespace,
	)
	return b.String()
}
