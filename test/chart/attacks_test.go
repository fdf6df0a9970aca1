package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// attacker makes requests with one user's rights.
type attacker struct {
	t      *testing.T
	client kubernetes.Interface
}

func (p *plain) as(user string) *attacker {
	p.t.Helper()
	config := rest.CopyConfig(p.rest)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	return &attacker{p.t, client}
}

func (a *attacker) do(verb, path, body string) (string, error) {
	r := a.client.CoreV1().RESTClient().Verb(verb).AbsPath(path).MaxRetries(0)
	if body != "" {
		kind := "application/json"
		if verb == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
		r = r.SetHeader("Content-Type", kind).Body([]byte(body))
	}
	b, err := r.DoRaw(context.Background())
	return string(b), err
}

const bobsJobs = "/apis/berth.hpc/v1alpha1/namespaces/user-bob/batchjobs"

// forged returns a job of bob's with fields that he may not set.
func forged(name, spec, batch string) string {
	return fmt.Sprintf(`{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-%s"},"spec":{%s"job":{"name":"x","hold":"user","batch":{"workDir":"/home/bob"%s}}}}`, name, spec, batch)
}

// TestAttackers: bob, who may submit jobs, tries to do more, with only what the chart
// has installed.
func TestAttackers(t *testing.T) {
	p := startPlain(t)
	// In a new cluster alice, the first user, is the administrator.
	values := append([]string{"--set=users[1].name=bob,users[1].uid=1001", "--set=cluster.maxJobCount=40", "--set=jobs.allowImages={site/*}"}, ephemeral...)
	if output, err := p.install("install", values...); err != nil {
		t.Fatal(err, output)
	}
	s := p.startScheduler()
	p.user("alice", "Administrator")
	p.user("bob", "None")
	p.submit("alice")
	p.submit("bob")
	bob := p.as("bob")
	t.Run("rights", func(t *testing.T) { rightsOfBob(t, bob) })
	t.Run("forged", func(t *testing.T) { forgeries(t, p, bob) })
	t.Run("webhooks", func(t *testing.T) { p.webhooks(t, s) })
	t.Run("flood", func(t *testing.T) { flood(t, bob) })
}

// rightsOfBob are actions for which bob has no permission.
func rightsOfBob(t *testing.T, bob *attacker) {
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"x","securityContext":{"privileged":true}}],
		"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}`
	const alices = "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs"
	for _, r := range []struct{ verb, path, body string }{
		{http.MethodGet, alices, ""},
		{http.MethodGet, alices + "/j-alice", ""},
		{http.MethodPost, alices, forged("theirs", "", "")},
		{http.MethodPatch, alices + "/j-alice", `{"spec":{"job":{"hold":""}}}`},
		{http.MethodDelete, alices + "/j-alice", ""},
		{http.MethodPatch, bobsJobs + "/j-bob/status", `{"status":{"state":"COMPLETED"}}`},
		{http.MethodPost, "/api/v1/namespaces/user-bob/pods", pod},
		{http.MethodPost, "/apis/batch/v1/namespaces/user-bob/jobs", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"}}`},
		{http.MethodPost, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/user-bob/jobsets", `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"x"}}`},
		{http.MethodPost, "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/user-bob/podgroups", `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"x"}}`},
		{http.MethodPatch, "/apis/berth.hpc/v1alpha1/partitions/main", `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`},
		{http.MethodPost, "/apis/berth.hpc/v1alpha1/partitions", `{"apiVersion":"berth.hpc/v1alpha1","kind":"Partition","metadata":{"name":"mine"},"spec":{"nodes":"ALL"}}`},
		{http.MethodPatch, "/apis/berth.hpc/v1alpha1/users/bob", `{"spec":{"adminLevel":"Administrator","uid":1}}`},
		{http.MethodPatch, "/apis/berth.hpc/v1alpha1/clusters/berth", `{"spec":{"maxJobCount":1000000}}`},
		{http.MethodGet, "/api/v1/namespaces/berth-system/secrets/berth-api-tls", ""},
		{http.MethodGet, "/api/v1/namespaces/berth-login/secrets/berth-host-keys", ""},
		{http.MethodGet, webhooks, ""},
		{http.MethodGet, "/api/v1/namespaces/berth-system/configmaps/job-ids", ""},
		{http.MethodPatch, "/api/v1/namespaces/berth-system/configmaps/job-ids", `{"data":{"next":"1"}}`},
		{http.MethodPost, "/api/v1/namespaces/user-alice/serviceaccounts/berth-job/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		{http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/user-bob/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"x"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`},
		{http.MethodPatch, "/api/v1/namespaces/user-bob", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`},
	} {
		if text, err := bob.do(r.verb, r.path, r.body); err == nil || !strings.Contains(text+err.Error(), "forbidden") {
			t.Errorf("%s %s: %v %.200s", r.verb, r.path, err, text)
		}
	}
}

// forgeries sends jobs in bob's own namespace, and changes of his own jobs, with values that he may
// not set.
func forgeries(t *testing.T, p *plain, bob *attacker) {
	text, err := bob.do(http.MethodPost, bobsJobs, forged("other", `"user":"alice","jobID":1,"submitTime":"2001-01-01T00:00:00Z",`, ""))
	if err == nil {
		var made struct {
			Spec struct {
				User, SubmitTime string
				JobID            int64
			}
		}
		if err := json.Unmarshal([]byte(text), &made); err != nil || made.Spec.User != "bob" || made.Spec.JobID < 3 || strings.HasPrefix(made.Spec.SubmitTime, "2001") {
			t.Errorf("forged values were stored: %s, %v", text, err)
		}
	}
	for name, body := range map[string]string{
		"an image that is not allowed": forged("image", "", `,"container":{"image":"other/image"}`),
		"a directory of the node":      forged("mount", "", `,"container":{"image":"site/image","mounts":"/var/lib/kubelet:/x"}`),
		"the agent's own directory":    forged("agent", "", `,"container":{"image":"site/image","mounts":"/home:/berth/bin"}`),
		"a group of other users":       forged("group", "", `,"group":{"name":"root","gid":0}`),
		"a foreign finalizer":          strings.Replace(forged("final", "", ""), `"name":"j-final"`, `"name":"j-final","finalizers":["example.org/mine"]`, 1),
		"a foreign owner":              strings.Replace(forged("owner", "", ""), `"name":"j-owner"`, `"name":"j-owner","ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"user-alice","uid":"1"}]`, 1),
	} {
		text, err := bob.do(http.MethodPost, bobsJobs, body)
		if err == nil && !strings.Contains(text, "example.org/mine") && !strings.Contains(text, "ownerReferences") && strings.Contains(name, "foreign") {
			continue // the API server or admission has removed it
		}
		if err == nil {
			t.Errorf("%s was accepted: %.300s", name, text)
		}
	}
	for name, patch := range map[string]string{
		"another user":      `{"spec":{"user":"alice"}}`,
		"another id":        `{"spec":{"jobID":1}}`,
		"no finalizer":      `{"metadata":{"finalizers":null}}`,
		"a higher priority": `{"spec":{"job":{"priority":4000000000}}}`,
	} {
		if text, err := bob.do(http.MethodPatch, bobsJobs+"/j-bob", patch); err == nil {
			t.Errorf("%s was accepted: %.300s", name, text)
		}
	}
	if text := p.must(http.MethodGet, bobsJobs+"/j-bob", ""); !strings.Contains(text, `"user":"bob"`) {
		t.Errorf("his job is now %s", text)
	}
}

// webhooks sends requests to the scheduler's port, as any pod in the cluster's network
// can. The paths of admission are secret, and the queue API trusts no identity headers.
func (p *plain) webhooks(t *testing.T, s *scheduler) {
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","operation":"CREATE","namespace":"user-bob",
		"userInfo":{"username":"bob"},"object":` + forged("x", "", "") + `}}`
	before := p.submit("bob")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // an attacker's
	for _, path := range []string{"/mutate/batchjobs", "/mutate/batchjobs/", "/mutate/batchjobs/" + strings.Repeat("0", 32), "/validate/batchjobs", "/mutate/pods", "/../mutate/batchjobs",
		"/apis/queue.berth.hpc/v1alpha1/operations", "/agent/v1/hello", "/agent/v1/report"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.api+path, bytes.NewReader([]byte(review)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Remote-User", "root")
		r.Header.Set("X-Remote-Group", "system:masters")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s %.200s", path, answer.Status, text)
		}
	}
	if after := p.submit("bob"); after != before+1 {
		t.Errorf("ids %d and %d: a request has used up an id", before, after)
	}
}

// flood submits more jobs than the cluster accepts, many at once.
func flood(t *testing.T, bob *attacker) {
	const jobs, most, clients = 200, 40, 64
	var accepted, refused atomic.Int64
	var group errgroup.Group
	group.SetLimit(clients)
	for n := range jobs {
		group.Go(func() error {
			text, err := bob.do(http.MethodPost, bobsJobs, forged(fmt.Sprintf("flood-%d", n), "", ""))
			switch {
			case err == nil:
				accepted.Add(1)
			case strings.Contains(text+err.Error(), "Resource temporarily unavailable"):
				refused.Add(1)
			default:
				return fmt.Errorf("%w: %s", err, text)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d jobs, %d accepted", jobs, accepted.Load())
	if accepted.Load() == 0 || accepted.Load() > most || refused.Load() == 0 {
		t.Errorf("%d were accepted and %d refused; the cluster's limit is %d", accepted.Load(), refused.Load(), most)
	}
}
