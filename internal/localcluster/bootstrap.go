package localcluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-hpc/berth/deploy"
	"github.com/berth-hpc/berth/internal/wire"
)

// bootstrap writes the definitions and roles that everything else needs: resource
// types, namespaces and RBAC. It returns when the types are served.
//
// types returns the resource types. Reading them takes a tenth of a second, so the
// caller can do it earlier.
//
// With gated, BatchJobs are admitted without webhooks, and therefore without the policy
// that belongs to them.
func bootstrap(ctx context.Context, a *api, types func() ([]*unstructured.Unstructured, error), gated bool) error {
	g, ctx := errgroup.WithContext(ctx)
	crds, err := types()
	if err != nil {
		return err
	}
	for _, o := range crds {
		g.Go(func() error { return a.define(ctx, o) })
	}
	g.Go(func() error {
		for _, name := range []string{wire.SystemNamespace, loginNamespace, loginPods} {
			if err := a.apply(ctx, namespace(name, nil)); err != nil {
				return err
			}
		}
		roles, err := manifests(deploy.RBAC)
		if err != nil {
			return err
		}
		policies, err := manifests(deploy.Admission)
		if err != nil {
			return err
		}
		if gated {
			if policies, err = withoutJobs(ctx, a, policies); err != nil {
				return err
			}
		}
		for _, o := range slices.Concat(roles, bindings(), policies) {
			g.Go(func() error { return a.apply(ctx, o) })
		}
		return nil
	})
	return g.Wait()
}

// withoutJobs returns the policies without those for BatchJobs, and deletes the latter
// if an earlier run has left them.
func withoutJobs(
	ctx context.Context, a *api, policies []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	var rest []*unstructured.Unstructured
	for _, o := range policies {
		if o.GetName() != "batchjobs.berth.hpc" {
			rest = append(rest, o)
			continue
		}
		p, err := path(o)
		if err != nil {
			return nil, err
		}
		if err := a.remove(ctx, p+"/"+o.GetName()); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// define applies a resource definition and waits until it is served.
func (a *api) define(ctx context.Context, o *unstructured.Unstructured) error {
	if err := a.apply(ctx, o); err != nil {
		return err
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		if err := a.awaitPath(ctx, fmt.Sprintf("/apis/%s/%s/%s?limit=1", group, version["name"], plural)); err != nil {
			return err
		}
	}
	return a.backdate(ctx, o)
}

// backdate backdates the time at which a resource type was established. For two seconds
// after it the API server delays the creation of objects, until other API servers know
// the type; here there is only one.
func (a *api) backdate(ctx context.Context, o *unstructured.Unstructured) error {
	status := map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": o.GetName()},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
			"message": "the initial names have been accepted", "lastTransitionTime": "2000-01-01T00:00:00Z",
		}}},
	}
	p, err := path(o)
	if err != nil {
		return err
	}
	return a.retry(ctx, func() error {
		return a.do(ctx, http.MethodPatch, p+"/"+o.GetName()+"/status?force=true&fieldManager="+fieldManager,
			"application/apply-patch+yaml", status, nil)
	})
}

// registerJobSet registers JobSet's webhooks at this process. A webhook that is
// registered before it is served would make requests fail.
func registerJobSet(ctx context.Context, a *api, url string, ca []byte) error {
	hooks, err := objects(deploy.JobSetWebhooks)
	if err != nil {
		return err
	}
	for _, o := range hooks {
		list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range list {
			hook := h.(map[string]any)
			p, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			hook["clientConfig"] = map[string]any{"url": url + p, "caBundle": base64.StdEncoding.EncodeToString(ca)}
		}
		if err := unstructured.SetNestedSlice(o.Object, list, "webhooks"); err != nil {
			return err
		}
		if err := a.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// bindings returns the role bindings that give the scheduler's identity the roles that
// Kubernetes has for schedulers.
func bindings() []*unstructured.Unstructured {
	subject := []any{
		map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:berth-scheduler"},
	}
	var all []*unstructured.Unstructured
	for _, role := range []string{"system:kube-scheduler", "system:volume-scheduler"} {
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": "berth-" + role[len("system:"):]},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": subject,
		}})
	}
	reader := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": map[string]any{"name": "berth-scheduler-authentication-reader", "namespace": "kube-system"},
		"roleRef": map[string]any{
			"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
			"name": "extension-apiserver-authentication-reader",
		},
		"subjects": subject,
	}}
	return append(all, reader)
}

func namespace(name string, labels map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta}}
}

func manifests(tree fs.FS) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		o, err := objects(data)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		all = append(all, o...)
		return nil
	})
	return all, err
}
