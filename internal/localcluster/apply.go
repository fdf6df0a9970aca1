package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// fieldManager is the field manager of what the local cluster writes.
const fieldManager = "berth-local"

// api writes configuration objects, with one request each. The typed clients would need
// a mapping and a scheme for kinds that are only written.
type api struct {
	http *http.Client
	base string
}

func newAPI(rc *rest.Config) (*api, error) {
	c, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, err
	}
	return &api{http: c, base: rc.Host}, nil
}

// resources has the names of the written kinds in paths.
var resources = map[string]struct {
	prefix, plural string
}{
	"Namespace":                      {"/api/v1", "namespaces"},
	"ConfigMap":                      {"/api/v1", "configmaps"},
	"ServiceAccount":                 {"/api/v1", "serviceaccounts"},
	"CustomResourceDefinition":       {"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"},
	"MutatingWebhookConfiguration":   {"/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {"/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"},
	"MutatingAdmissionPolicy":        {"/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"},
	"MutatingAdmissionPolicyBinding": {"/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"},
	"ClusterRole":                    {"/apis/rbac.authorization.k8s.io/v1", "clusterroles"},
	"ClusterRoleBinding":             {"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"},
	"Role":                           {"/apis/rbac.authorization.k8s.io/v1", "roles"},
	"RoleBinding":                    {"/apis/rbac.authorization.k8s.io/v1", "rolebindings"},
	"User":                           {"/apis/berth.hpc/v1alpha1", "users"},
	"Partition":                      {"/apis/berth.hpc/v1alpha1", "partitions"},
	"Cluster":                        {"/apis/berth.hpc/v1alpha1", "clusters"},
	"NodePool":                       {"/apis/berth.hpc/v1alpha1", "nodepools"},
}

func path(o *unstructured.Unstructured) (string, error) {
	r, ok := resources[o.GetKind()]
	if !ok {
		return "", fmt.Errorf("no path is known for kind %q", o.GetKind())
	}
	if ns := o.GetNamespace(); ns != "" {
		return r.prefix + "/namespaces/" + ns + "/" + r.plural, nil
	}
	return r.prefix + "/" + r.plural, nil
}

// apply creates the object, or changes it to the given one.
func (a *api) apply(ctx context.Context, o *unstructured.Unstructured) error {
	p, err := path(o)
	if err != nil {
		return err
	}
	return a.retry(ctx, func() error {
		return a.do(ctx, http.MethodPatch, p+"/"+o.GetName()+"?force=true&fieldManager="+fieldManager,
			"application/apply-patch+yaml", o.Object, nil)
	})
}

// remove deletes the object at path, unless there is none.
func (a *api) remove(ctx context.Context, path string) error {
	return a.retry(ctx, func() error {
		err := a.do(ctx, http.MethodDelete, path, "", nil, nil)
		var s *statusError
		if errors.As(err, &s) && s.Code == http.StatusNotFound {
			return nil
		}
		return err
	})
}

// awaitPath waits until a GET of the path succeeds.
func (a *api) awaitPath(ctx context.Context, path string) error {
	return a.retry(ctx, func() error { return a.do(ctx, http.MethodGet, path, "", nil, nil) })
}

// retry repeats requests that fail because the server is still starting.
func (a *api) retry(ctx context.Context, f func() error) error {
	start := time.Now()
	for {
		err := f()
		if err == nil || !isStarting(err) {
			return err
		}
		select {
		case <-time.After(pause(time.Since(start))):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// pause returns how long to wait before the next attempt: a fraction of the time so far,
// so that fast starts are not delayed, and slow ones do not fill the API server's log with
// failed attempts.
func pause(tried time.Duration) time.Duration {
	return min(max(tried/4, 15*time.Millisecond), 250*time.Millisecond)
}

// isStarting reports whether an error can be that of a starting server: kinds not served
// yet (404), roles not created yet (403), caches not filled (429, 5xx).
func isStarting(err error) bool {
	if errors.Is(err, errNotReady) {
		return true
	}
	var s *statusError
	if !errors.As(err, &s) {
		return false
	}
	switch s.Code {
	case http.StatusNotFound, http.StatusForbidden, http.StatusTooManyRequests, http.StatusConflict:
		return true
	}
	return s.Code >= 500
}

// statusError is an error response of the API server.
type statusError struct{ metav1.Status }

func (e *statusError) Error() string { return e.Message }

func (a *api) do(ctx context.Context, method, path, contentType string, body, into any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	data, err = io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		e := &statusError{}
		if json.Unmarshal(data, &e.Status) != nil || e.Message == "" {
			e.Message = response.Status
		}
		e.Code = int32(response.StatusCode)
		return fmt.Errorf("%s %s: %w", method, path, e)
	}
	if into != nil {
		return json.Unmarshal(data, into)
	}
	return nil
}

// object converts a typed object to what is sent: without status and without fields
// that only the server sets.
func object(apiVersion, kind string, v any) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: m}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	unstructured.RemoveNestedField(m, "status")
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	return o, nil
}

// objects parses YAML documents.
func objects(data []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, doc := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}
