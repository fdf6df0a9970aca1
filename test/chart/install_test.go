package chart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/eventually"
)

const (
	podGroups = "podgroups.scheduling.x-k8s.io"
	jobSets   = "jobsets.jobset.x-k8s.io"
)

// ephemeral needs no storage.
var ephemeral = append([]string{"--set=accounting.sqlite.ephemeral=true"}, alice...)

// TestBadClusters installs on clusters that lack something: it is reported, and nothing
// is created.
func TestBadClusters(t *testing.T) {
	p := startPlain(t)
	refused := func(name, want string, args ...string) {
		t.Run(name, func(t *testing.T) {
			output, err := p.install("install", args...)
			if err == nil || !strings.Contains(output, want) {
				t.Errorf("%v, output:\n%s\nwant %q", err, output, want)
			}
			list, err := p.helm("list", "--all", "--short")
			if err != nil || strings.TrimSpace(list) != "" {
				t.Errorf("releases %q, %v", list, err)
			}
			if !p.gone("/api/v1/namespaces/berth-system") || !p.gone(crds+"/batchjobs.berth.hpc") ||
				!p.gone("/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-scheduler") {
				t.Error("objects were created")
			}
		})
	}
	refused("no default storage", "The cluster has no default storage class", alice...)
	refused("no such storage class", "has no storage class fast", append([]string{"--set=accounting.sqlite.storageClass=fast"}, alice...)...)
	refused("no such claim", "there is no claim mine", append([]string{"--set=accounting.sqlite.existingClaim=mine"}, alice...)...)
	refused("no such Secret", "there is no Secret pg", append([]string{"--set=accounting.storage=postgresql,accounting.postgresql.existingSecret=pg"}, alice...)...)
	refused("no JobSet", "the cluster has no JobSet", append([]string{"--set=jobset.embedded=false"}, ephemeral...)...)

	p.must(http.MethodPost, crds, crd("jobset.x-k8s.io", "jobsets", "JobSet", "v1alpha2"))
	refused("JobSet without its controller", "JobSet's CRD and no JobSet controller", ephemeral...)
	refused("JobSet twice", "a JobSet CRD that this release did not make", append([]string{"--set=jobset.embedded=true"}, ephemeral...)...)
	p.must(http.MethodDelete, crds+"/"+jobSets, "")

	p.must(http.MethodPost, crds, crd("scheduling.x-k8s.io", "podgroups", "PodGroup", "v1beta1"))
	refused("PodGroups of another version", "of version v1beta1; Berth needs v1alpha1", ephemeral...)
}

// TestInstall installs, upgrades and uninstalls. The scheduler runs as a process, with
// the flags and the ServiceAccount of its pod, since there are no nodes.
func TestInstall(t *testing.T) {
	p := startPlain(t)
	p.must(http.MethodPost, crds, crd("scheduling.x-k8s.io", "podgroups", "PodGroup", "v1alpha1")) // for example of scheduler-plugins
	p.defaultClass()
	if output, err := p.install("install", alice...); err != nil {
		t.Fatal(err, output)
	}
	// This is the policy's effect, because no process serves the webhooks yet.
	eventually.Holds(t, "pods that name Berth's scheduler tolerate its nodes' taint", p.tolerates)
	s := p.startScheduler()
	p.user("alice", "Administrator")

	id := p.submit("alice")
	if id != 1 {
		t.Errorf("the first job has the id %d", id)
	}
	secret := p.must(http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", "")
	keys := p.must(http.MethodGet, hostKeys, "")
	hook := p.must(http.MethodGet, webhooks, "")
	if !strings.Contains(hook, "/mutate/batchjobs/") {
		t.Errorf("the webhook's path has no secret part: %s", hook)
	}
	eventually.Holds(t, "metrics of the leader and of the job", func() bool {
		metrics := s.get("/metrics")
		return strings.Contains(metrics, "berth_leading 1") && strings.Contains(metrics, `berth_jobs{partition="main",state="PENDING"} 1`)
	})

	// Changes by an administrator stay; changes of the values are applied.
	p.must(http.MethodPatch, "/apis/berth.hpc/v1alpha1/users/alice", `{"spec":{"adminLevel":"Operator"}}`)
	s.stop()
	// The process has set its own address, which is outside the cluster.
	p.must(http.MethodDelete, "/api/v1/namespaces/berth-system/services/berth-api", "")
	if output, err := p.install("upgrade", append([]string{"--set=users[1].name=bob,users[1].uid=1001", "--set=partitions.big.maxNodes=7"}, alice...)...); err != nil {
		t.Fatal(err, output)
	}
	s = p.startScheduler()
	p.user("bob", "None")
	p.user("alice", "Operator")
	if part := p.must(http.MethodGet, "/apis/berth.hpc/v1alpha1/partitions/big", ""); !strings.Contains(part, `"maxNodes":7`) {
		t.Errorf("partition: %s", part)
	}
	if got := p.must(http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", ""); got != secret {
		t.Error("the upgrade changed the certificate authority")
	}
	if got := p.must(http.MethodGet, hostKeys, ""); data(t, got) != data(t, keys) {
		t.Error("the upgrade changed the host keys")
	}
	if id := p.submit("bob"); id <= 1 {
		t.Errorf("a later job has the id %d", id)
	}
	s.stop()

	// Certificates are renewed as docs/admin/install.md describes.
	p.must(http.MethodDelete, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", "")
	s = p.startScheduler()
	p.submit("bob")
	if got := p.must(http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", ""); data(t, got) == data(t, secret) {
		t.Error("the certificate authority was not renewed")
	}
	s.stop()

	p.uninstall()
	// An administrator who removes Berth finds users' bindings by the label of the CRDs.
	if left := p.must(http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=app.kubernetes.io%2Fname%3Dberth", ""); !strings.Contains(left, `"berth-queue-alice"`) {
		t.Errorf("bindings with the label: %s", left)
	}
	if output, err := p.install("install", append([]string{"--set=accounting.sqlite.storageClass=fast"}, alice...)...); err == nil || !strings.Contains(output, "the claim berth-accounting is there, of the class ") {
		t.Errorf("another class for the claim that was left: %v, %s", err, output)
	}
	if output, err := p.install("install", alice...); err != nil {
		t.Fatal(err, output)
	}
	s = p.startScheduler()
	defer s.stop()
	if later := p.submit("alice"); later <= id+1 {
		t.Errorf("after the release was removed and installed again a job has the id %d", later)
	}
}

// tolerates reports whether a pod that names Berth's scheduler gets the toleration of
// its nodes.
func (p *plain) tolerates() bool {
	p.t.Helper()
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"guest"},"spec":{"schedulerName":"berth-scheduler","containers":[{"name":"c","image":"x"}]}}`
	made, err := p.raw(http.MethodPost, "/api/v1/namespaces/default/pods?dryRun=All", pod)
	if err != nil {
		p.t.Fatalf("%v: %s", err, made)
	}
	return strings.Contains(made, `"key":"berth.hpc/managed"`)
}

const hostKeys = "/api/v1/namespaces/berth-login/secrets/berth-host-keys"

// data returns the data of a Secret.
func data(t *testing.T, secret string) string {
	t.Helper()
	var o struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(secret), &o); err != nil || len(o.Data) == 0 {
		t.Fatalf("%v in %s", err, secret)
	}
	return fmt.Sprint(o.Data)
}

const webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth"

// uninstall removes the release and checks which objects are kept.
func (p *plain) uninstall() {
	p.t.Helper()
	if output, err := p.helm("uninstall", "berth", "--wait"); err != nil {
		p.t.Fatal(err, output)
	}
	eventually.Holds(p.t, "pods get no toleration any more", func() bool { return !p.tolerates() })
	for _, path := range []string{webhooks, "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/pods.berth.hpc", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.queue.berth.hpc",
		"/apis/apps/v1/namespaces/berth-system/deployments/berth-scheduler", "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-scheduler"} {
		if !p.gone(path) {
			p.t.Errorf("%s is left", path)
		}
	}
	for _, path := range []string{"/apis/berth.hpc/v1alpha1/users/alice", "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs/j-alice",
		"/api/v1/namespaces/berth-system/persistentvolumeclaims/berth-accounting", hostKeys, crds + "/" + podGroups, crds + "/" + jobSets} {
		if p.gone(path) {
			p.t.Errorf("%s was removed with the release", path)
		}
	}
	// No webhook prevents the creation of pods.
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"},"spec":{"containers":[{"name":"c","image":"x"}]}}`
	p.must(http.MethodPost, "/api/v1/namespaces/user-alice/pods", pod)
}

// TestPodSecurity checks that the chart's own pods satisfy the restricted standard.
func TestPodSecurity(t *testing.T) {
	p := startPlain(t)
	if output, err := p.install("install", ephemeral...); err != nil {
		t.Fatal(err, output)
	}
	d, err := p.client.AppsV1().Deployments("berth-system").Get(t.Context(), "berth-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "strict", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := p.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "strict"}, Spec: d.Spec.Template.Spec}
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "default", ""
	eventually.Holds(t, "the namespace's ServiceAccount", func() bool { return !p.gone("/api/v1/namespaces/strict/serviceaccounts/default") })
	if _, err := p.client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	// A pod that does not satisfy the standard is refused.
	pod.Spec.Containers = slices.Clone(pod.Spec.Containers)
	pod.Spec.Containers[0].SecurityContext = nil
	if _, err := p.client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
		t.Errorf("a pod without restrictions: %v", err)
	}
}
