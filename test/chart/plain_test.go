package chart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/eventually"
)

// plain is a Kubernetes cluster without Berth and without nodes.
type plain struct {
	t          *testing.T
	kubeconfig string
	rest       *rest.Config
	client     kubernetes.Interface
}

// startPlain starts a cluster with bin/berth-local, which ends with the test.
func startPlain(t *testing.T) *plain {
	t.Helper()
	program, err := filepath.Abs("../../bin/berth-local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v (make build)", err)
	}
	state := filepath.Join(t.TempDir(), "state")
	t.Cleanup(func() {
		if out, err := exec.Command(program, "down", "--state-dir", state).CombinedOutput(); err != nil {
			t.Errorf("berth-local down: %v: %s", err, out)
		}
	})
	if out, err := exec.CommandContext(t.Context(), program, "run", "--nodes=0", "--scheduler=none", "--state-dir", state).CombinedOutput(); err != nil {
		t.Fatalf("berth-local: %v: %s", err, out)
	}
	p := &plain{t: t, kubeconfig: filepath.Join(state, "kubeconfig")}
	if p.rest, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	p.rest.QPS, p.rest.Burst = 500, 1000
	if p.client, err = kubernetes.NewForConfig(p.rest); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plain) helm(args ...string) (string, error) {
	p.t.Helper()
	out, output, err := helm(p.t, p.kubeconfig, append(args, "--namespace=berth-system")...)
	return out + output, err
}

// install installs or upgrades; args are further values.
func (p *plain) install(verb string, args ...string) (string, error) {
	p.t.Helper()
	if verb == "install" {
		args = append(args, "--create-namespace")
	}
	return p.helm(append([]string{verb, "berth", chartDir}, args...)...)
}

// raw sends one request and returns the response.
func (p *plain) raw(verb, path, body string) (string, error) {
	p.t.Helper()
	// RequestURI, and not AbsPath, which would escape a query.
	r := p.client.CoreV1().RESTClient().Verb(verb).RequestURI(path)
	if body != "" {
		kind := "application/json"
		if verb == http.MethodPatch {
			kind = string(types.MergePatchType)
		}
		r = r.SetHeader("Content-Type", kind).Body([]byte(body))
	}
	b, err := r.DoRaw(p.t.Context())
	return string(b), err
}

func (p *plain) must(verb, path, body string) string {
	p.t.Helper()
	out, err := p.raw(verb, path, body)
	if err != nil {
		p.t.Fatalf("%s %s: %v: %s", verb, path, err, out)
	}
	return out
}

func (p *plain) gone(path string) bool {
	_, err := p.raw(http.MethodGet, path, "")
	return apierrors.IsNotFound(err)
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// crd is a CRD of another product.
func crd(group, plural, kind, version string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.%[1]s",
		"annotations":{"api-approved.kubernetes.io":"unapproved, a test"}},
		"spec":{"group":"%[1]s","scope":"Namespaced","names":{"plural":"%[2]s","singular":"%[5]s","kind":"%[3]s","listKind":"%[3]sList"},
		"versions":[{"name":"%[4]s","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
		group, plural, kind, version, strings.ToLower(kind))
}

func (p *plain) defaultClass() {
	p.t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.org/none"}
	if _, err := p.client.StorageV1().StorageClasses().Create(p.t.Context(), class, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// user waits until a User has the level, and its namespace has the user's permissions.
func (p *plain) user(name, level string) {
	p.t.Helper()
	eventually.Holds(p.t, "user "+name, func() bool {
		u, err := p.raw(http.MethodGet, "/apis/berth.hpc/v1alpha1/users/"+name, "")
		return err == nil && strings.Contains(u, `"adminLevel":"`+level+`"`) &&
			!p.gone("/apis/rbac.authorization.k8s.io/v1/namespaces/user-"+name+"/rolebindings/berth-user") &&
			!p.gone("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-queue-"+name)
	})
}

// submit creates a job as the user, with the user's own permissions, and returns its
// id.
func (p *plain) submit(user string) int64 {
	p.t.Helper()
	as := rest.CopyConfig(p.rest)
	as.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		p.t.Fatal(err)
	}
	job := `{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-` + user + `"},"spec":{"job":{"name":"x","hold":"user","batch":{"workDir":"/home/` + user + `"}}}}`
	var made struct{ Spec struct{ JobID int64 } }
	path := "/apis/berth.hpc/v1alpha1/namespaces/user-" + user + "/batchjobs"
	// A new name for each try, because the API server uses new webhooks and bindings
	// only after a moment.
	n := 0
	eventually.Holds(p.t, "a job of "+user, func() bool {
		body := job
		if n++; !p.gone(path + "/j-" + user) {
			body = strings.Replace(job, "j-"+user, fmt.Sprintf("j-%s-%d", user, time.Now().UnixNano()), 1)
		}
		b, err := client.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).DoRaw(p.t.Context())
		if err != nil {
			if n%50 == 0 {
				p.t.Logf("submitting: %v %s", err, b)
			}
			return false
		}
		return json.Unmarshal(b, &made) == nil && made.Spec.JobID > 0
	})
	return made.Spec.JobID
}
