package controlplane

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/berth-hpc/berth/internal/wire"
)

func creation(name, subresource string, object map[string]any) admission.Attributes {
	gv := schema.GroupVersion{Group: "berth.hpc", Version: "v1alpha1"}
	return admission.NewAttributesRecord(&unstructured.Unstructured{Object: object}, nil, gv.WithKind("BatchJob"), "user-anna", "j-1",
		gv.WithResource("batchjobs"), subresource, admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: name, Groups: []string{"berth:users"}})
}

func TestGateCompletesJobs(t *testing.T) {
	g := &Gate{Self: "system:berth-scheduler"}
	g.Decide(func(_ context.Context, mutating bool, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var o struct{ Spec struct{ Name string } }
		if err := json.Unmarshal(r.Object.Raw, &o); err != nil || o.Spec.Name != "x" || r.UserInfo.Username != "anna" || r.Namespace != "user-anna" || !mutating {
			t.Errorf("%+v %v", r, err)
		}
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(
			`[{"op":"add","path":"/spec/jobID","value":7},{"op":"add","path":"/metadata/labels","value":{"a":"b"}},` +
				`{"op":"remove","path":"/metadata/annotations/berth.hpc~1x"}]`)}
	})
	o := map[string]any{
		"metadata": map[string]any{"name": "j-1", "managedFields": []any{map[string]any{"manager": "sbatch"}}, "annotations": map[string]any{"berth.hpc/x": "1", "mine": "2"}},
		"spec":     map[string]any{"name": "x"},
	}
	if err := g.Admit(t.Context(), creation("anna", "", o), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"name": "j-1", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"mine": "2"}},
		"spec":     map[string]any{"name": "x", "jobID": int64(7)},
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("%v", o)
	}
}

// TestGateRefuses: the gate refuses jobs while no scheduler decides, and those that it refuses.
func TestGateRefuses(t *testing.T) {
	g := &Gate{Self: "system:berth-scheduler"}
	job := func() map[string]any { return map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}} }
	check := func(what string, code int) {
		t.Helper()
		for _, f := range []func(context.Context, admission.Attributes, admission.ObjectInterfaces) error{g.Admit, g.Validate} {
			if err := f(t.Context(), creation("anna", "", job()), nil); err == nil || int(err.(apierrors.APIStatus).Status().Code) != code {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	check("no scheduler", http.StatusServiceUnavailable)
	g.Decide(func(context.Context, bool, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil })
	check("no response", http.StatusServiceUnavailable)
	g.Decide(func(context.Context, bool, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Message: "no"}}
	})
	check("refused", http.StatusForbidden)
	// The scheduler may create jobs that have an id.
	numbered := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"jobID": int64(3)}}
	if err := g.Admit(t.Context(), creation(g.Self, "", numbered), nil); err != nil {
		t.Error(err)
	}
	if err := g.Admit(t.Context(), creation(g.Self, "", job()), nil); err == nil {
		t.Error("a job without an id was accepted")
	}
	if err := g.Admit(t.Context(), creation("anna", "status", job()), nil); err != nil {
		t.Error(err)
	}
	g.Decide(nil)
	check("no scheduler any more", http.StatusServiceUnavailable)
}

// TestGateDropsManagedFields: the gate drops them only from objects of jobs, whose owners do not
// use server-side apply, and only when they are created.
func TestGateDropsManagedFields(t *testing.T) {
	create := func(labels map[string]string, subresource string, op admission.Operation) int {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}},
		}}
		gv := corev1.SchemeGroupVersion
		a := admission.NewAttributesRecord(pod, nil, gv.WithKind("Pod"), "user-anna", "p", gv.WithResource("pods"),
			subresource, op, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "anna"})
		if err := new(Gate).Admit(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		return len(pod.ManagedFields)
	}
	ofJob := map[string]string{wire.LabelJobID: "7"}
	if n := create(ofJob, "", admission.Create); n != 0 {
		t.Errorf("a job's pod is stored with managedFields")
	}
	for what, n := range map[string]int{
		"a pod of no job":        create(map[string]string{"app": "web"}, "", admission.Create),
		"a subresource":          create(ofJob, "eviction", admission.Create),
		"an update with entries": create(ofJob, "", admission.Update),
	} {
		if n != 1 {
			t.Errorf("%s lost its managedFields", what)
		}
	}
}
