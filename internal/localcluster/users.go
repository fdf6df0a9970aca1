package localcluster

import (
	"context"
	"fmt"
	"regexp"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
	"github.com/berth-hpc/berth/internal/wire"
)

// groupUsers is the group in users' certificates.
const groupUsers = "berth:users"

// berthAPI is the version of Berth's resource types.
const berthAPI = "berth.hpc/v1alpha1"

// objectName matches valid names of namespaces.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Namespace returns the namespace of an account's jobs.
func (a Account) Namespace() string { return "user-" + a.Name }

// Check returns an error if an account cannot be a user of the cluster.
func (a Account) Check() error {
	if !objectName.MatchString(a.Name) || len(a.Namespace()) > 63 {
		return fmt.Errorf("user %q: the name becomes the name of a Kubernetes namespace and may hold lower-case letters, digits and hyphens only", a.Name)
	}
	return nil
}

// addUser creates the objects of a user: the User object, and a namespace with the
// ServiceAccount of its jobs and permissions for its own jobs.
func addUser(ctx context.Context, a *api, u Account, adminLevel string) error {
	user, err := object(berthAPI, "User", &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: u.Name},
		Spec: v1alpha1.UserSpec{
			UID: u.UID, GID: u.GID, Groups: u.Groups, Home: u.Home, Shell: u.Shell,
			Namespace: u.Namespace(), AdminLevel: adminLevel,
		},
	})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.apply(ctx, user) })
	g.Go(func() error {
		ns := namespace(u.Namespace(), map[string]any{wire.LabelNamespace: u.Name})
		if err := a.apply(ctx, ns); err != nil {
			return err
		}
		for _, o := range userObjects(u) {
			if err := a.apply(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

func userObjects(u Account) []*unstructured.Unstructured {
	ns := u.Namespace()
	person := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": u.Name}
	jobs := map[string]any{"kind": "ServiceAccount", "name": v1alpha1.ServiceAccountName, "namespace": ns}
	rbac := func(kind, name, namespace, role string, subjects ...any) *unstructured.Unstructured {
		meta := map[string]any{"name": name}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta,
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": subjects,
		}}
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"name": v1alpha1.ServiceAccountName, "namespace": ns}}},
		rbac("RoleBinding", "berth-user", ns, "berth-user", person, jobs),
		// Users are in the group berth:users; the ServiceAccount of a job is not.
		rbac("ClusterRoleBinding", "berth-queue-"+u.Name, "", "berth-queue", jobs),
	}
}

// userKubeconfig returns a new client configuration of a user.
func (k *cluster) userKubeconfig(u Account) ([]byte, error) {
	pair, err := k.pki.CA.Sign(pki.Leaf{CommonName: u.Name, Organizations: []string{groupUsers}})
	if err != nil {
		return nil, err
	}
	return pki.Kubeconfig(k.info.Server, k.pki.CA.CertPEM, pair, u.Name, u.Namespace(), k.direct(u.Name)), nil
}

// permitNamespaces lets the scheduler create the namespaces of users, if it gets them from a
// directory. It may bind the two roles of users and no others.
func (k *cluster) permitNamespaces(ctx context.Context, a *api) error {
	if k.Directory == "" {
		return nil
	}
	const rbac, name = "rbac.authorization.k8s.io", "berth-namespaces"
	rule := func(group string, resources, verbs []any, names ...any) any {
		r := map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
		if len(names) > 0 {
			r["resourceNames"] = names
		}
		return r
	}
	for _, o := range []map[string]any{{
		"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{
			rule("", []any{"namespaces", "serviceaccounts"}, []any{"get", "create"}),
			rule(rbac, []any{"rolebindings", "clusterrolebindings"}, []any{"get", "create", "update"}),
			rule(rbac, []any{"clusterroles"}, []any{"bind"}, "berth-user", "berth-queue"),
		},
	}, {
		"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": name},
		"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": identityScheduler}},
	}} {
		if err := a.apply(ctx, &unstructured.Unstructured{Object: o}); err != nil {
			return err
		}
	}
	return nil
}
