package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience bounds every wait for a condition.
const patience = time.Minute

// plain is a Kubernetes without anything of Berth, and without nodes.
type plain struct {
	t          *testing.T
	kubeconfig string
	rest       *rest.Config
	client     kubernetes.Interface
}

// startPlain starts one of the tree's programs; it ends with the test.
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
	out, said, err := helm(p.t, p.kubeconfig, append(args, "--namespace=berth-system")...)
	return out + said, err
}

// install installs or upgrades; args are further values.
func (p *plain) install(verb string, args ...string) (string, error) {
	p.t.Helper()
	if verb == "install" {
		args = append(args, "--create-namespace")
	}
	return p.helm(append([]string{verb, "berth", chartDir}, args...)...)
}

// raw makes one request and returns the answer.
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

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// crd is a CRD of somebody else.
func crd(group, plural, kind, version string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.%[1]s",
		"annotations":{"api-approved.kubernetes.io":"unapproved, a test"}},
		"spec":{"group":"%[1]s","scope":"Namespaced","names":{"plural":"%[2]s","singular":"%[5]s","kind":"%[3]s","listKind":"%[3]sList"},
		"versions":[{"name":"%[4]s","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
		group, plural, kind, version, strings.ToLower(kind))
}

const (
	podGroups = "podgroups.scheduling.x-k8s.io"
	jobSets   = "jobsets.jobset.x-k8s.io"
)

// ephemeral needs no storage.
var ephemeral = append([]string{"--set=accounting.sqlite.ephemeral=true"}, alice...)

// TestBadClusters installs on clusters that lack something: it is said, and
// nothing is made.
func TestBadClusters(t *testing.T) {
	p := startPlain(t)
	refused := func(name, want string, args ...string) {
		t.Run(name, func(t *testing.T) {
			said, err := p.install("install", args...)
			if err == nil || !strings.Contains(said, want) {
				t.Errorf("%v, said:\n%s\nwant %q", err, said, want)
			}
			list, err := p.helm("list", "--all", "--short")
			if err != nil || strings.TrimSpace(list) != "" {
				t.Errorf("releases %q, %v", list, err)
			}
			if !p.gone("/api/v1/namespaces/berth-system") || !p.gone(crds+"/batchjobs.berth.hpc") ||
				!p.gone("/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-scheduler") {
				t.Error("something was made")
			}
		})
	}
	refused("no default storage", "The cluster has no default storage class", alice...)
	refused("no such storage class", "has no storage class fast", append([]string{"--set=accounting.sqlite.storageClass=fast"}, alice...)...)
	refused("no such claim", "there is no claim mine", append([]string{"--set=accounting.sqlite.existingClaim=mine"}, alice...)...)
	refused("no such Secret", "there is no Secret pg", append([]string{"--set=accounting.storage=postgresql,accounting.postgresql.existingSecret=pg"}, alice...)...)
	refused("JobSet is left to nobody", "the cluster has no JobSet", append([]string{"--set=jobset.embedded=false"}, ephemeral...)...)

	p.must(http.MethodPost, crds, crd("jobset.x-k8s.io", "jobsets", "JobSet", "v1alpha2"))
	refused("JobSet without its controller", "JobSet's CRD and no JobSet controller", ephemeral...)
	refused("JobSet twice", "a JobSet CRD that this release did not make", append([]string{"--set=jobset.embedded=true"}, ephemeral...)...)
	p.must(http.MethodDelete, crds+"/"+jobSets, "")

	p.must(http.MethodPost, crds, crd("scheduling.x-k8s.io", "podgroups", "PodGroup", "v1beta1"))
	refused("PodGroups of another version", "of version v1beta1; Berth needs v1alpha1", ephemeral...)
}

// TestInstall goes through the life of an installation. The scheduler runs as
// a process, with the flags and the ServiceAccount that the chart gives its pod,
// since there are no nodes.
func TestInstall(t *testing.T) {
	p := startPlain(t)
	p.must(http.MethodPost, crds, crd("scheduling.x-k8s.io", "podgroups", "PodGroup", "v1alpha1")) // of scheduler-plugins, say
	p.defaultClass()
	if said, err := p.install("install", alice...); err != nil {
		t.Fatal(err, said)
	}
	// By the policy alone, for nobody serves the webhooks yet.
	until(t, "pods that name Berth's scheduler tolerate its nodes' taint", p.tolerates)
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
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "berth_leading 1") || !strings.Contains(metrics, `berth_jobs{partition="main",state="PENDING"} 1`) {
		t.Errorf("metrics:\n%s", metrics)
	}

	// What an administrator changed stays; what the values change is changed.
	p.must(http.MethodPatch, "/apis/berth.hpc/v1alpha1/users/alice", `{"spec":{"adminLevel":"Operator"}}`)
	s.stop()
	// The process has pointed it at itself, outside the cluster.
	p.must(http.MethodDelete, "/api/v1/namespaces/berth-system/services/berth-api", "")
	if said, err := p.install("upgrade", append([]string{"--set=users[1].name=bob,users[1].uid=1001", "--set=partitions.big.maxNodes=7"}, alice...)...); err != nil {
		t.Fatal(err, said)
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

	// As docs/admin/install.md has it, certificates are renewed.
	p.must(http.MethodDelete, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", "")
	s = p.startScheduler()
	p.submit("bob")
	if got := p.must(http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", ""); data(t, got) == data(t, secret) {
		t.Error("the certificate authority is the old one")
	}
	s.stop()

	p.uninstall()
	if said, err := p.install("install", alice...); err != nil {
		t.Fatal(err, said)
	}
	s = p.startScheduler()
	defer s.stop()
	if later := p.submit("alice"); later <= id+1 {
		t.Errorf("after the release was removed and installed again a job has the id %d", later)
	}
}

// tolerates tells whether a pod that names Berth's scheduler is given the
// toleration of its nodes.
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

// data is what a Secret holds.
func data(t *testing.T, secret string) string {
	t.Helper()
	var o struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(secret), &o); err != nil || len(o.Data) == 0 {
		t.Fatalf("%v in %s", err, secret)
	}
	return fmt.Sprint(o.Data)
}

const webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth"

// uninstall removes the release and checks what stays.
func (p *plain) uninstall() {
	p.t.Helper()
	if said, err := p.helm("uninstall", "berth", "--wait"); err != nil {
		p.t.Fatal(err, said)
	}
	until(p.t, "pods are given no toleration any more", func() bool { return !p.tolerates() })
	for _, path := range []string{webhooks, "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/pods.berth.hpc", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.queue.berth.hpc",
		"/apis/apps/v1/namespaces/berth-system/deployments/berth-scheduler", "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-scheduler"} {
		if !p.gone(path) {
			p.t.Errorf("%s is left", path)
		}
	}
	for _, path := range []string{"/apis/berth.hpc/v1alpha1/users/alice", "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs/j-alice",
		"/api/v1/namespaces/berth-system/persistentvolumeclaims/berth-accounting", hostKeys, crds + "/" + podGroups, crds + "/" + jobSets} {
		if p.gone(path) {
			p.t.Errorf("%s has gone with the release", path)
		}
	}
	// Without webhooks in the way.
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"},"spec":{"containers":[{"name":"c","image":"x"}]}}`
	p.must(http.MethodPost, "/api/v1/namespaces/user-alice/pods", pod)
}

func (p *plain) defaultClass() {
	p.t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.org/none"}
	if _, err := p.client.StorageV1().StorageClasses().Create(p.t.Context(), class, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// user waits for a User with that level, and for its namespace.
func (p *plain) user(name, level string) {
	p.t.Helper()
	until(p.t, "user "+name, func() bool {
		u, err := p.raw(http.MethodGet, "/apis/berth.hpc/v1alpha1/users/"+name, "")
		return err == nil && strings.Contains(u, `"adminLevel":"`+level+`"`) &&
			!p.gone("/apis/rbac.authorization.k8s.io/v1/namespaces/user-"+name+"/rolebindings/berth-user") &&
			!p.gone("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-queue-"+name)
	})
}

// submit makes a job as the user, with the user's own rights, and returns its
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
	// A name of its own for each try: the API server takes up webhooks and
	// bindings a moment after they are made.
	n := 0
	until(p.t, "a job of "+user, func() bool {
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

// scheduler is the process that stands for the chart's pod.
type scheduler struct {
	t      *testing.T
	cmd    *exec.Cmd
	health string
	api    string // host:port of admission, queue API and agents
}

var flagValue = regexp.MustCompile(`^(--[a-z-]+)=(.*)$`)

// startScheduler runs the scheduler with the Deployment's flags, as its
// ServiceAccount, and waits until it leads; what depends on a pod's network is
// put differently.
func (p *plain) startScheduler() *scheduler {
	p.t.Helper()
	s := p.start("berth-scheduler", filepath.Join(p.t.TempDir(), "accounting.db"))
	until(p.t, "the scheduler leads", func() bool { return s.get("/readyz") == "leading" })
	return s
}

// start runs a pod of a Deployment as a process, with its records in storage.
func (p *plain) start(deployment, storage string) *scheduler {
	p.t.Helper()
	d, err := p.client.AppsV1().Deployments("berth-system").Get(p.t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	s := &scheduler{t: p.t, health: free(p.t), api: free(p.t)}
	own := map[string]string{
		"--public-url": "https://" + s.api, "--bind-address": s.api, "--health-address": s.health, "--jobset-webhook-address": free(p.t),
		"--pod": "", "--objects": p.objects(), "--accounting-storage": storage,
	}
	args := []string{"--kubeconfig=" + p.account(d)}
	for _, a := range d.Spec.Template.Spec.Containers[0].Args {
		if m := flagValue.FindStringSubmatch(a); m != nil {
			if v, ok := own[m[1]]; ok {
				a = m[1] + "=" + v
			}
		}
		args = append(args, a)
	}
	s.cmd = exec.Command("../../bin/scheduler", args...)
	log, err := os.Create(filepath.Join(p.t.TempDir(), deployment+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		s.stop()
		if p.t.Failed() {
			b, _ := os.ReadFile(log.Name())
			p.t.Logf("%s:\n%s", deployment, b)
		}
	})
	return s
}

// stop ends the process; its lease is free then.
func (s *scheduler) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // how it ended does not matter here
}

func (s *scheduler) get(path string) string {
	r, err := http.Get("http://" + s.health + path) //nolint:noctx // on loopback
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	var b strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			return b.String()
		}
	}
}

// objects writes the ConfigMap that the pod mounts into a folder.
func (p *plain) objects() string {
	p.t.Helper()
	m, err := p.client.CoreV1().ConfigMaps("berth-system").Get(p.t.Context(), "berth-objects", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	for name, text := range m.Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	return dir
}

// account writes a kubeconfig of the Deployment's ServiceAccount.
func (p *plain) account(d *appsv1.Deployment) string {
	p.t.Helper()
	hours := int64(7200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	var token *authenticationv1.TokenRequest
	until(p.t, "a token", func() (ok bool) {
		var err error
		token, err = p.client.CoreV1().ServiceAccounts("berth-system").CreateToken(context.Background(), d.Spec.Template.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		return err == nil
	})
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, u := range config.AuthInfos {
		u.ClientCertificateData, u.ClientKeyData, u.Token = nil, nil, token.Status.Token
	}
	file := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// free is an address on loopback that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // on loopback
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestPodSecurity says what the chart's own pods are: fit for the restricted
// standard.
func TestPodSecurity(t *testing.T) {
	p := startPlain(t)
	if said, err := p.install("install", ephemeral...); err != nil {
		t.Fatal(err, said)
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
	until(t, "the namespace's ServiceAccount", func() bool { return !p.gone("/api/v1/namespaces/strict/serviceaccounts/default") })
	if _, err := p.client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	// And the check does refuse.
	pod.Spec.Containers = slices.Clone(pod.Spec.Containers)
	pod.Spec.Containers[0].SecurityContext = nil
	if _, err := p.client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
		t.Errorf("a pod without restrictions: %v", err)
	}
}
