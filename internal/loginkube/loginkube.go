// Package loginkube is the login node's client of the cluster: the User objects, keys in
// ConfigMaps and Secrets, and short-lived tokens of the users' ServiceAccounts. It
// watches the API server, so that a login needs no request and a change takes effect
// within seconds.
package loginkube

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Options of a Cluster.
type Options struct {
	// Kubeconfig is the login node's own; "": the pod's service account.
	Kubeconfig string
	// KeysNamespace is the namespace of ConfigMaps and Secrets with keys, which have the
	// label berth.hpc/ssh-keys=true. The name of an entry is a user's name, its text
	// lines of authorized_keys. "": none.
	KeysNamespace string
	// Nodes watches the nodes, so that users reach those of their jobs.
	Nodes bool
	// Server is the API server's URL for users; "": the login node's.
	Server string
	// TokenLife is the requested lifetime of a user's token; 0: an hour.
	TokenLife time.Duration
	// Pods configures users' login pods; nil: there are none.
	Pods *Pods
	// Log is called with errors; nil: they are discarded.
	Log func(text string)
}

// Person is a user of the cluster.
type Person struct {
	Name        string
	UID, GID    int
	Groups      []int
	GroupNames  map[int]string // of those that have one
	Home, Shell string
	Keys        []string // lines of authorized_keys
}

// Cluster is the login node's view of the cluster. It is safe for concurrent use.
type Cluster struct {
	opts    Options
	process *stdio.Process
	client  *kube.Client
	users   *mirror[v1alpha1.User]
	nodes   *mirror[nodeObject] // nil: not followed
	keys    []*mirror[keyObject]
}

// serviceAccount is the directory of a pod's own credential.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Connect returns a Cluster and watches the API server until ctx is done. It does not
// wait for an answer: until the first one, Lookup fails.
func Connect(ctx context.Context, p *stdio.Process, o Options) (*Cluster, error) {
	cfg, err := config(p, o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(p, cfg)
	if err != nil {
		return nil, err
	}
	if o.TokenLife == 0 {
		o.TokenLife = time.Hour
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	c := &Cluster{opts: o, process: p, client: client}
	c.users = follow[v1alpha1.User](ctx, c, "/apis/berth.hpc/v1alpha1/users", "")
	if o.Nodes {
		c.nodes = follow[nodeObject](ctx, c, "/api/v1/nodes", "")
	}
	if o.KeysNamespace != "" {
		for _, kind := range []string{"configmaps", "secrets"} {
			path := "/api/v1/namespaces/" + o.KeysNamespace + "/" + kind
			c.keys = append(c.keys, follow[keyObject](ctx, c, path, "berth.hpc/ssh-keys=true"))
		}
	}
	return c, nil
}

// config returns the login node's own configuration for the API server.
func config(p *stdio.Process, kubeconfig string) (*kube.Config, error) {
	if kubeconfig != "" {
		return kube.Find(p, kubeconfig)
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fmt.Errorf("not in a pod: name a kubeconfig")
	}
	ca, err := os.ReadFile(filepath.Join(serviceAccount, "ca.crt"))
	if err != nil {
		return nil, err
	}
	return &kube.Config{
		Server: "https://" + net.JoinHostPort(host, port), CA: ca, Namespace: "default",
		TokenFile: filepath.Join(serviceAccount, "token"), Source: "pod",
	}, nil
}

// Server returns the host and port of the API server, to which nobody needs to forward
// through the login node.
func (c *Cluster) Server() string {
	s := strings.TrimPrefix(c.client.Config().Server, "https://")
	s, _, _ = strings.Cut(s, "/")
	if !strings.Contains(s, ":") {
		s += ":443"
	}
	return s
}

// stale is how long a mirror is used without an answer of the API server.
const stale = 10 * time.Minute

// Lookup returns a user; nil, nil: there is none.
func (c *Cluster) Lookup(_ context.Context, name string) (*Person, error) {
	if err := c.users.fresh(); err != nil {
		return nil, err
	}
	u, ok := c.users.get(name)
	if !ok {
		return nil, nil
	}
	if err := c.check(&u); err != nil {
		return nil, err
	}
	if u.Spec.Disabled {
		return nil, fmt.Errorf("the user %s is disabled", name)
	}
	p := &Person{
		Name: name, UID: int(u.Spec.UID), GID: int(u.Spec.GID), Groups: []int{int(u.Spec.GID)},
		GroupNames: map[int]string{}, Home: u.Spec.Home, Shell: u.Spec.Shell, Keys: slices.Clone(u.Spec.SSHKeys),
	}
	for _, g := range u.Spec.Groups {
		if g.Name != "" {
			p.GroupNames[int(g.GID)] = g.Name
		}
		if !slices.Contains(p.Groups, int(g.GID)) {
			p.Groups = append(p.Groups, int(g.GID))
		}
	}
	if p.Home == "" {
		p.Home = "/home/" + name
	}
	if p.Shell == "" {
		p.Shell = "/bin/bash"
	}
	return p, c.addKeys(p)
}

// Revoked reports whether a user who logged in with the uid may no longer do so: the User is
// disabled, has another uid, or was deleted. While the API server is away, what it said last
// counts.
func (c *Cluster) Revoked(name string, uid int) bool {
	select {
	case <-c.users.first:
	default:
		return false // nothing is known yet
	}
	u, ok := c.users.get(name)
	return !ok || u.Spec.Disabled || u.Spec.UID != int64(uid)
}

// maxID is the largest uid or gid; the one above means "no change" to the kernel.
const maxID = 1<<32 - 2

// check rejects a User object that must not log in.
func (c *Cluster) check(u *v1alpha1.User) error {
	if u.Spec.UID < 0 || u.Spec.UID > maxID || u.Spec.GID < 0 || u.Spec.GID > maxID {
		return fmt.Errorf("user object %s: uid %d or gid %d out of range", u.Name, u.Spec.UID, u.Spec.GID)
	}
	for _, g := range u.Spec.Groups {
		if g.GID < 0 || g.GID > maxID {
			return fmt.Errorf("user object %s: gid %d out of range", u.Name, g.GID)
		}
	}
	if u.Spec.Home != "" && !filepath.IsAbs(u.Spec.Home) {
		return fmt.Errorf("user object %s: home %q is not an absolute path", u.Name, u.Spec.Home)
	}
	if other := c.users.find(
		func(o *v1alpha1.User) bool { return o.Spec.UID == u.Spec.UID && o.Name != u.Name },
	); other != nil {
		return fmt.Errorf("user objects %s and %s have the same uid %d", u.Name, other.Name, u.Spec.UID)
	}
	return nil
}

func (c *Cluster) addKeys(p *Person) error {
	for _, m := range c.keys {
		if err := m.fresh(); err != nil {
			return err
		}
		m.each(func(o *keyObject) { p.Keys = append(p.Keys, o.lines(p.Name)...) })
	}
	return nil
}
