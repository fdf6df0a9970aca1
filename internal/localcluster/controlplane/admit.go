package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/warning"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Admit decides about a request for a BatchJob as a mutating or validating webhook
// does. nil: nobody decides at the moment, and the request may be sent again.
type Admit func(ctx context.Context, mutating bool, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Gate is an admission plugin that admits BatchJobs within this process. Webhooks cost
// the work of two connections and several encodings of the job, twice for each
// submission. Safe for concurrent use.
type Gate struct {
	// Self is the identity whose requests need no decision, except those that create a
	// job without an id.
	Self string

	admit atomic.Pointer[Admit]
}

// gateName is the name of the plugin.
const gateName = "BerthJobs"

// Decide sets the function that decides; nil: nobody does.
func (g *Gate) Decide(a Admit) {
	if a == nil {
		g.admit.Store(nil)
		return
	}
	g.admit.Store(&a)
}

// addGate adds the plugin to an API server, before policies and webhooks.
func addGate(o *apiserveroptions.ServerRunOptions, g *Gate) {
	a := o.Admission.GenericAdmission
	a.Plugins.Register(gateName, func(io.Reader) (admission.Interface, error) { return g, nil })
	at := max(slices.Index(a.RecommendedPluginOrder, mutatingpolicy.PluginName), 0)
	a.RecommendedPluginOrder = slices.Insert(slices.Clone(a.RecommendedPluginOrder), at, gateName)
}

// Handles reports whether the plugin handles the operation.
func (g *Gate) Handles(op admission.Operation) bool { return op != admission.Connect }

// Admit completes what is created or changed.
func (g *Gate) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Create && a.GetSubresource() == "" {
		dropManagedFields(a)
	}
	if !ofJobs(a) || a.GetOperation() == admission.Delete {
		return nil
	}
	o, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("a BatchJob of type %T", a.GetObject()))
	}
	response, err := g.decide(ctx, a, true)
	if err != nil || response == nil || len(response.Patch) == 0 {
		return err
	}
	if err := applyPatch(o.Object, response.Patch); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// Validate checks what is about to be stored or deleted.
func (g *Gate) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !ofJobs(a) {
		return nil
	}
	_, err := g.decide(ctx, a, false)
	return err
}

// dropManagedFields removes managedFields from BatchJobs, as deploy/admission does in other
// clusters, and from the objects that run them. They are nearly half of a JobSet, a Job and
// a Pod, and the API server compares them in each write; an object that is created without
// them gets none later. Nobody uses server-side apply for objects of jobs.
func dropManagedFields(a admission.Attributes) {
	o, err := meta.Accessor(a.GetObject())
	if err != nil {
		return // not an object, such as a review
	}
	if _, ofAJob := o.GetLabels()[wire.LabelJobID]; ofAJob || ofJobs(a) {
		o.SetManagedFields(nil)
	}
}

func ofJobs(a admission.Attributes) bool {
	r := a.GetResource()
	return r.Group == v1alpha1.GroupVersion.Group && r.Resource == "batchjobs" && a.GetSubresource() == ""
}

// decide calls the function that decides. It returns nil if the request needs no decision.
func (g *Gate) decide(
	ctx context.Context, a admission.Attributes, mutating bool,
) (*admissionv1.AdmissionResponse, error) {
	if a.GetUserInfo().GetName() == g.Self && (a.GetOperation() != admission.Create || hasID(a.GetObject())) {
		return nil, nil
	}
	admit := g.admit.Load()
	if admit == nil {
		return nil, errNobody
	}
	r, err := request(a)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	response := (*admit)(ctx, mutating, r)
	if response == nil {
		return nil, errNobody
	}
	for _, text := range response.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	if !response.Allowed {
		return nil, webhookerrors.ToStatusErr(gateName, response.Result)
	}
	return response, nil
}

var errNobody = apierrors.NewServiceUnavailable("Berth's scheduler does not decide about jobs yet")

// hasID reports whether a job has its id.
func hasID(o runtime.Object) bool {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	id, _, _ := unstructured.NestedInt64(u.Object, "spec", "jobID")
	return id != 0
}

// request returns the request that a webhook would receive, with the fields that
// Berth's webhooks use.
func request(a admission.Attributes) (*admissionv1.AdmissionRequest, error) {
	gvr, user, dry := a.GetResource(), a.GetUserInfo(), a.IsDryRun()
	r := &admissionv1.AdmissionRequest{
		Resource:  metav1.GroupVersionResource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource},
		Namespace: a.GetNamespace(), Name: a.GetName(), Operation: admissionv1.Operation(a.GetOperation()),
		DryRun:   &dry,
		UserInfo: authenticationv1.UserInfo{Username: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups()},
	}
	var errs [3]error
	r.Object.Raw, errs[0] = encoded(a.GetObject())
	r.OldObject.Raw, errs[1] = encoded(a.GetOldObject())
	r.Options.Raw, errs[2] = encoded(a.GetOperationOptions())
	return r, errors.Join(errs[:]...)
}

// encoded returns o as JSON; nil stays nil.
func encoded(o runtime.Object) ([]byte, error) {
	switch x := o.(type) {
	case nil:
		return nil, nil
	case *unstructured.Unstructured:
		return json.Marshal(x.Object)
	}
	return json.Marshal(o)
}

// applyPatch applies one of Berth's own JSON patches, which only add and remove members
// of objects.
func applyPatch(root map[string]any, patch []byte) error {
	var ops []any
	if err := utiljson.Unmarshal(patch, &ops); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, x := range ops {
		op, _ := x.(map[string]any)
		path, _ := op["path"].(string)
		names := strings.Split(strings.TrimPrefix(path, "/"), "/")
		at := root
		for _, name := range names[:len(names)-1] {
			below, ok := at[unescape.Replace(name)].(map[string]any)
			if !ok {
				return fmt.Errorf("patch: no object at %q", path)
			}
			at = below
		}
		last := unescape.Replace(names[len(names)-1])
		switch op["op"] {
		case "add":
			at[last] = op["value"]
		case "remove":
			delete(at, last)
		default:
			return fmt.Errorf("patch: operation %v at %q", op["op"], path)
		}
	}
	return nil
}
