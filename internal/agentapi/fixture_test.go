package agentapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

var errOver = errors.New("not current")

// fixture is a server of the agents with a cluster in memory. It is the keeper itself.
type fixture struct {
	*control.Cluster
	server  *agentapi.Server
	http    *httptest.Server
	mu      sync.Mutex
	ready   int   // calls of GangReady
	refuse  error // if set, GangReady and Report return it
	reports []wire.Report
	ends    bool // Report ends the job, whose pods stay if they wait for another one
	pool    *agentapi.Pool
	reviews int         // of tokens
	leads   func() bool // nil: it does

	clockMu   sync.Mutex
	now       time.Time
	podPerJob bool // on every node
}

func newFixture(t *testing.T) *fixture {
	h := &fixture{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	h.Cluster = fake.Cluster(interceptor.Funcs{Create: h.create})
	h.restart(t)
	fake.Feed(h.Cluster, fake.User("anna", 1001), fake.User("ben", 1002))
	return h
}

// restart replaces the server by a new one for the same cluster.
func (h *fixture) restart(t *testing.T) {
	h.pool = agentapi.NewPool(h.clock)
	h.server = agentapi.New(agentapi.Options{
		Pool: h.pool, PodPerJob: func(string) bool { return h.podPerJob },
		Cluster: h.Cluster, Keeper: h, Gone: func(err error) bool { return errors.Is(err, errOver) },
		Leads:   func() bool { return h.leads == nil || h.leads() },
		KubeURL: "https://kube", Poll: 5 * time.Second, Now: h.clock,
	})
	h.http = httptest.NewServer(h.server)
	t.Cleanup(h.http.Close)
}

func (h *fixture) clock() time.Time {
	h.clockMu.Lock()
	defer h.clockMu.Unlock()
	return h.now
}

// bearer returns the token of a service account whose claims are in its name,
// "namespace/pod/uid/account"; other names are returned unchanged.
func bearer(name string) string {
	part := strings.Split(name, "/")
	if len(part) != 4 {
		return name
	}
	claims := fmt.Sprintf(`{"iss":"https://kube","aud":["https://kube"],"exp":1900000000,"sub":"system:serviceaccount:%s:%s","kubernetes.io":{"namespace":%q,"pod":{"name":%q,"uid":%q}}}`,
		part[0], part[3], part[0], part[1], part[2])
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// create performs token reviews: the signature of a valid token is its name.
func (h *fixture) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	review, ok := o.(*authv1.TokenReview)
	if !ok {
		return c.Create(ctx, o, opts...)
	}
	h.mu.Lock()
	h.reviews++
	h.mu.Unlock()
	name, _ := base64.RawURLEncoding.DecodeString(review.Spec.Token[strings.LastIndexByte(review.Spec.Token, '.')+1:])
	part := strings.Split(string(name), "/")
	if len(part) != 4 || bearer(string(name)) != review.Spec.Token {
		return nil
	}
	review.Status.Authenticated = true
	review.Status.User.Username = "system:serviceaccount:" + part[0] + ":" + part[3]
	if part[1] != "" {
		review.Status.User.Extra = map[string]authv1.ExtraValue{
			"authentication.kubernetes.io/pod-name": {part[1]}, "authentication.kubernetes.io/pod-uid": {part[2]},
		}
	}
	return nil
}

func (h *fixture) GangReady(_ context.Context, id int64, n int32, agents []wire.AgentInfo) (*v1alpha1.BatchJob, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready++
	if h.refuse != nil {
		return nil, h.refuse
	}
	old, _ := h.Job(id)
	b := old.DeepCopy()
	start := metav1.NewMicroTime(h.clock())
	b.Status.State, b.Status.StartTime = v1alpha1.StateRunning, &start
	for i := range agents {
		b.Status.Allocation.Nodes[i].Address = agents[i].Address
	}
	fake.Feed(h.Cluster, b)
	return b, nil
}

func (h *fixture) Report(_ context.Context, id int64, n int32, r wire.Report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, r)
	if old, _ := h.Job(id); h.ends {
		b := old.DeepCopy()
		b.Status.State = v1alpha1.StateCompleted
		if h.pool.IsWaiting(b) {
			host := b.RunsIn()
			b.Status.Pods = &host
		}
		fake.Feed(h.Cluster, b)
	}
	return h.refuse
}

// place adds job id of a user in its attempt, with n nodes and their pods.
func (h *fixture) place(t *testing.T, id int64, user string, attempt int32, n int) *v1alpha1.BatchJob {
	t.Helper()
	b := &v1alpha1.BatchJob{}
	b.Name, b.Namespace, b.UID = fmt.Sprintf("j-%d", id), "user-"+user, types.UID(fmt.Sprint("uid-", id))
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main", Job: job.Job{Name: "ring", Account: "physics"}, Script: []byte("script"), Environment: []byte("env")}
	b.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateConfiguring, Attempt: attempt, TimeLimit: 10, Allocation: &v1alpha1.Allocation{}}
	for i := range n {
		b.Status.Allocation.Nodes = append(b.Status.Allocation.Nodes, v1alpha1.NodeAllocation{Name: fmt.Sprintf("n%d", i+1), CPUs: 2, Tasks: 1})
		fake.Feed(h.Cluster, pod(id, user, attempt, i))
	}
	stored := b.DeepCopy()
	b.UID = stored.UID
	if err := h.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	stored.Status = b.Status
	if err := h.Client.Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	b.Spec.Script, b.Spec.Environment = nil, nil // as in the stores
	fake.Feed(h.Cluster, b)
	return b
}

func podName(id int64, attempt int32, i int) string {
	return fmt.Sprintf("job-%d-%d-n0-0-%d", id, attempt, i)
}

func pod(id int64, user string, attempt int32, i int) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: podName(id, attempt, i), Namespace: "user-" + user, UID: types.UID("uid-" + user + podName(id, attempt, i)),
		Labels:          map[string]string{wire.LabelJobID: fmt.Sprint(id), wire.LabelAttempt: fmt.Sprint(attempt)},
		Annotations:     map[string]string{"batch.kubernetes.io/job-completion-index": fmt.Sprint(i), wire.AnnotationPodTemplateHash: "m"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("job-%d-%d-n0-0", id, attempt), Controller: &yes}},
	}}
}

// token returns the name of the token of the pod on node i of a job, for bearer.
func token(id int64, user string, attempt int32, i int) string {
	name := podName(id, attempt, i)
	return "user-" + user + "/" + name + "/uid-" + user + name + "/berth-job"
}

// post posts a message and returns the code and the body of the response; code 0 means that
// there was no response.
func (h *fixture) post(ctx context.Context, path, token string, in, out any) (int, string) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.http.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+bearer(token))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func hello(id int64, attempt int32, i int) wire.Hello {
	return wire.Hello{JobID: id, Attempt: attempt, Index: int32(i), Address: fmt.Sprintf("10.0.0.%d:7000", i+1)}
}

// helloAll sends the hello of every node at the same time and returns the welcomes.
func (h *fixture) helloAll(t *testing.T, id int64, user string, attempt int32, n int) []wire.Welcome {
	t.Helper()
	welcomes := make([]wire.Welcome, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if code, text := h.post(t.Context(), wire.PathHello, token(id, user, attempt, i), hello(id, attempt, i), &welcomes[i]); code != 200 {
				t.Errorf("node %d: %d %s", i, code, text)
			}
		})
	}
	wg.Wait()
	return welcomes
}
