package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// authority signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	a.cert = template
	a.cert = a.sign(t, template, key)
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) client(t *testing.T, name string) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := a.sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, key)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: map[string]string{
		"requestheader-client-ca-file":   string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})),
		"requestheader-allowed-names":    `["front-proxy-client"]`,
		"requestheader-username-headers": `["X-Remote-User"]`,
		"requestheader-group-headers":    `["X-Remote-Group"]`,
	}}
}

type house struct {
	ops *api.Operations
	*control.Cluster
	server *httptest.Server
	proxy  *tls.Certificate
	table  *table.Table
	mu     sync.Mutex
	sent   []wire.Command
	now    time.Time
	nodes  []status.Node // nil: n1
	// viewing, if set, is called when a list of nodes begins to be made.
	viewing func()
}

func (h *house) Send(_ int64, _ int32, c wire.Command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = append(h.sent, c)
}
func (h *house) NodesView() []status.Node {
	if h.viewing != nil {
		h.viewing()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes != nil {
		return h.nodes
	}
	return []status.Node{{Name: "n1", State: "IDLE", Partitions: []string{"main"}}}
}
func (h *house) PartitionsView() []status.Partition { return []status.Partition{{Name: "main"}} }

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func newHouse(t *testing.T, a *authority) *house {
	named := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetUID(types.UID(o.GetName())) // as the API server gives one
		return c.Create(ctx, o, opts...)
	}}
	h := &house{Cluster: fake.Cluster(named, a.configMap()), proxy: a.client(t, "front-proxy-client"), now: time.Now()}
	dir := directory.New(h.Cluster, nil)
	mux := http.NewServeMux()
	rows := table.New(h.Cluster, dir, nil)
	h.table = rows
	h.ops = &api.Operations{Cluster: h.Cluster, Directory: dir, Agents: h, Now: h.clock, Table: rows, Pool: h}
	api.New(api.Options{
		Directory: dir, Table: rows, Pool: h, Now: h.clock,
		Operations: h.ops,
		Proxy:      &api.FrontProxy{Client: h.Client, Now: h.clock},
	}).Register(mux)
	h.server = httptest.NewUnstartedServer(mux)
	h.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	h.server.EnableHTTP2 = true // as between the API server and this one
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	opal := fake.User("opal", 1003)
	opal.Spec.AdminLevel = directory.LevelOperator
	fake.Feed(h.Cluster, fake.User("anna", 1001), fake.User("ben", 1002), opal)
	return h
}

// ask sends a request with a client certificate (nil: none) for a user.
func (h *house) ask(t *testing.T, cert *tls.Certificate, user, method, path string, in, out any) int {
	t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, h.server.URL+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("X-Remote-User", user)
	}
	tr := h.server.Client().Transport.(*http.Transport).Clone()
	defer tr.CloseIdleConnections()
	if cert != nil {
		tr.TLSClientConfig.Certificates = []tls.Certificate{*cert}
	}
	resp, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil && resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode
}

func (h *house) add(t *testing.T, id int64, user string, change func(*v1alpha1.BatchJob)) {
	t.Helper()
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Name: "j-" + string(rune('a'+id)), Namespace: "user-" + user}}
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main"}
	if change != nil {
		change(b)
	}
	b.UID = types.UID("uid-" + b.Name)
	status := b.Status
	if err := h.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Status = status
	if err := h.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h.Jobs.Apply(b.DeepCopy())
}

func state(s string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.State, b.Status.Attempt = s, 1 }
}

func TestOnlyTheFrontProxy(t *testing.T) {
	a := newAuthority(t)
	h := newHouse(t, a)
	jobs := wire.QueueRoot + "/jobs"
	for name, c := range map[string]struct {
		cert *tls.Certificate
		user string
		code int
	}{
		"the front proxy":     {h.proxy, "anna", 200},
		"no certificate":      {nil, "anna", 401},
		"another name":        {a.client(t, "anna"), "anna", 401},
		"another authority":   {newAuthority(t).client(t, "front-proxy-client"), "anna", 401},
		"nobody asked for it": {h.proxy, "", 401},
	} {
		if code := h.ask(t, c.cert, c.user, "GET", jobs, nil, nil); code != c.code {
			t.Errorf("%s: %d", name, code)
		}
	}
	for _, path := range []string{"/apis", "/apis/queue.berth.hpc", wire.QueueRoot, "/openapi/v2", "/openapi/v3"} {
		if code := h.ask(t, h.proxy, "system:kube-aggregator", "GET", path, nil, &map[string]any{}); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// The front proxy's authority is replaced while we run.
func TestAuthorityChanges(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+"/jobs", nil, nil)
	next := newAuthority(t)
	if err := h.Client.Update(t.Context(), next.configMap()); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.now = h.now.Add(2 * time.Second)
	h.mu.Unlock()
	if code := h.ask(t, next.client(t, "front-proxy-client"), "anna", "GET", wire.QueueRoot+"/jobs", nil, nil); code != 200 {
		t.Errorf("the new one: %d", code)
	}
	if code := h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+"/jobs", nil, nil); code != 401 {
		t.Errorf("the old one: %d", code)
	}
}

func TestPrivateData(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	h.add(t, 2, "ben", nil)
	count := func(user, query string) int {
		var list status.JobList
		if code := h.ask(t, h.proxy, user, "GET", wire.QueueRoot+"/jobs"+query, nil, &list); code != 200 {
			t.Fatal(code)
		}
		return len(list.Items)
	}
	if n := count("anna", ""); n != 2 {
		t.Errorf("%d jobs", n)
	}
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"Jobs"}}))
	for _, c := range []struct {
		user, query string
		want        int
	}{
		{"anna", "", 1}, {"anna", "?user=ben", 0}, {"anna", "?id=2", 0}, {"anna", "?user=ben,anna", 1},
		{"stranger", "", 0}, {"opal", "", 2}, {"opal", "?user=ben", 1},
	} {
		if n := count(c.user, c.query); n != c.want {
			t.Errorf("%s %s: %d jobs, want %d", c.user, c.query, n, c.want)
		}
	}
}

func TestOperations(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	held := func(kind string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = kind }
	}
	no := false
	h.add(t, 1, "anna", nil)
	h.add(t, 2, "ben", nil)
	h.add(t, 3, "anna", state(v1alpha1.StateRunning))
	h.add(t, 4, "anna", state(v1alpha1.StateCompleted))
	h.add(t, 5, "anna", held("admin"))
	h.add(t, 6, "anna", held("user"))
	h.add(t, 7, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Spec.Job.Batch.Requeue = v1alpha1.StateRunning, &no
	})
	h.add(t, 8, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StatePending
	})
	h.add(t, 9, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StateCompleted
	})
	h.add(t, 11, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Spec.Cancel = v1alpha1.StateRunning, &v1alpha1.CancelRequest{By: "anna"}
	})
	h.add(t, 10, "anna", func(b *v1alpha1.BatchJob) { b.Status.State, b.Spec.Requeues = v1alpha1.StateFailed, 1 })
	for _, c := range []struct {
		user, verb, job, want string
	}{
		{"anna", "cancel", "8", ""}, // it would be back in the queue in a moment
		{"anna", "cancel", "9", "Job/step already completing or completed"},
		{"anna", "cancel", "10", ""},
		{"anna", "hold", "1", ""},
		{"anna", "hold", "2", "Invalid user id"},
		{"anna", "hold", "3", ""},
		{"anna", "release", "5", "Access/permission denied"},
		{"opal", "release", "5", ""},
		{"anna", "release", "6", ""},
		{"opal", "hold", "6", ""},
		{"anna", "requeue", "1", "Job is pending execution"},
		{"anna", "requeue", "7", "Requested operation is presently disabled"},
		{"anna", "requeue", "2", "Access/permission denied"},
		{"anna", "requeue", "3", ""},
		{"anna", "requeue", "11", "Job/step already completing or completed"}, // it would be cancelled all the same
		{"anna", "signal", "1", "Job can not be altered now, try again later"},
		{"anna", "signal", "3", ""},
		{"ben", "signal", "3", "Access/permission denied"},
		{"anna", "cancel", "2", "Access/permission denied"},
		{"anna", "cancel", "4", "Job/step already completing or completed"},
		{"anna", "cancel", "99", "Invalid job id specified"},
		{"anna", "cancel", "3_1", "Invalid job id specified"},
		{"anna", "cancel", "3+1", "Invalid job id specified"},
		{"anna", "cancel", "x", "Invalid job id specified"},
		{"anna", "cancel", "3", ""},
		{"opal", "cancel", "2", ""},
	} {
		var out status.OperationResult
		op := status.Operation{Verb: c.verb, Jobs: []string{c.job}, Signal: 10}
		if code := h.ask(t, h.proxy, c.user, "POST", wire.QueueRoot+"/operations", op, &out); code != 200 || len(out.Items) != 1 || out.Items[0].Error != c.want {
			t.Errorf("%s %s %s: %d %+v, want %q", c.user, c.verb, c.job, code, out.Items, c.want)
		}
	}
	stored := func(id int64) v1alpha1.BatchJobSpec {
		known, _ := h.Job(id)
		b := &v1alpha1.BatchJob{}
		if err := h.Client.Get(context.Background(), client.ObjectKeyFromObject(known), b); err != nil {
			t.Fatal(err)
		}
		return b.Spec
	}
	if s := stored(1); s.Job.Hold != "user" {
		t.Errorf("1: %+v", s)
	}
	if s := stored(3); s.Requeues != 1 || s.Cancel == nil || s.Cancel.By != "anna" || len(h.sent) != 1 || h.sent[0].Signal != 10 {
		t.Errorf("3: %+v, sent %+v", s, h.sent)
	}
	if stored(8).Cancel == nil || stored(10).Cancel == nil {
		t.Errorf("8: %+v, 10: %+v", stored(8), stored(10))
	}
	if s := stored(6); s.Job.Hold != "admin" || stored(5).Job.Hold != "" || stored(2).Cancel.By != "opal" {
		t.Errorf("6: %+v", s)
	}
}

func TestOperationByFilter(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	for id := range int64(20) {
		h.add(t, id+1, []string{"anna", "ben"}[id%2], nil)
	}
	var out status.OperationResult
	h.ask(t, h.proxy, "anna", "POST", wire.QueueRoot+"/operations", status.Operation{Verb: "cancel", Users: []string{"anna"}}, &out)
	if len(out.Items) != 10 || strings.Contains(strings.ToLower(out.Items[3].Error), "denied") {
		t.Errorf("%+v", out.Items)
	}
	for _, op := range []status.Operation{{Verb: "cancel"}, {Verb: "explode", Jobs: []string{"1"}}, {Verb: "signal", Jobs: []string{"1"}, Signal: 99}} {
		if code := h.ask(t, h.proxy, "anna", "POST", wire.QueueRoot+"/operations", op, nil); code != 400 {
			t.Errorf("%+v: %d", op, code)
		}
	}
}

// Webhook calls name no user, only the connection counts.
func TestCheck(t *testing.T) {
	a := newAuthority(t)
	h := newHouse(t, a)
	proxy := &api.FrontProxy{Client: h.Client, Now: h.clock}
	check := func(cert *tls.Certificate) error {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.TLS = &tls.ConnectionState{}
		if cert != nil {
			leaf, err := x509.ParseCertificate(cert.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			r.TLS.PeerCertificates = []*x509.Certificate{leaf}
		}
		return proxy.Check(r)
	}
	if err := check(a.client(t, "front-proxy-client")); err != nil {
		t.Errorf("the front proxy: %v", err)
	}
	for name, cert := range map[string]*tls.Certificate{
		"no certificate": nil,
		"another name":   a.client(t, "anna"),
		"another signer": newAuthority(t).client(t, "front-proxy-client"),
	} {
		if check(cert) == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
