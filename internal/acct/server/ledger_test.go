package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// handler serves a request of a caller.
type handler func(http.ResponseWriter, *http.Request, *directory.Caller)

// get calls h with the query q, decodes the response into out, and returns the HTTP status.
func get(t *testing.T, h handler, c *directory.Caller, q string, out any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+url.Values{"q": {q}}.Encode(), nil), c)
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
	} else if w.Code >= http.StatusInternalServerError {
		t.Error(w.Body)
	}
	return w.Code
}

// withDatabase returns a fixture whose recorder has opened its database.
func withDatabase(t *testing.T) *fixture {
	t.Helper()
	h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
	eventually.Succeeds(t, "the database is open", func() error {
		_, err := h.Recorder.Events(t.Context(), &status.EventQuery{})
		return err
	})
	return h
}

// runningJob returns a job of the user, charged to the account, that has run on a node with
// four CPUs since a time.
func runningJob(id int64, user, account string, since time.Time) *v1alpha1.BatchJob {
	b := job(id, user, account)
	start := metav1.NewMicroTime(since)
	b.Spec.SubmitTime = &start
	b.Status.State, b.Status.Attempt, b.Status.StartTime = v1alpha1.StateRunning, 1, &start
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 4, Memory: 100}}}
	return b
}

// TestUsageOfOtherUsersIsHidden: with PrivateData=usage, callers see the usage that is theirs, or
// of accounts that they coordinate.
func TestUsageOfOtherUsersIsHidden(t *testing.T) {
	h := withDatabase(t)
	since := time.Now().Add(-time.Hour)
	fake.Feed(h.Cluster, runningJob(1, "anna", "science", since), runningJob(2, "ben", "arts", since))
	query := `{"start":` + jsonNumber(since.Unix()) + `,"end":` + jsonNumber(time.Now().Unix()+10) + `}`
	users := func(name string) []string {
		t.Helper()
		var out status.UsageList
		if code := get(t, h.usage, h.as(name), query, &out); code != http.StatusOK {
			t.Fatalf("%s: %d", name, code)
		}
		var list []string
		for _, u := range out.Items {
			list = append(list, u.User)
		}
		slices.Sort(list)
		return list
	}
	both := []string{"anna", "ben"}
	if got := users("anna"); !slices.Equal(got, both) {
		t.Errorf("without PrivateData anna sees the usage of %v", got)
	}
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"usage"}}))
	for name, want := range map[string][]string{"anna": {"anna"}, "ben": {"ben"}, "carl": {"anna"}, "opal": both, "eve": nil} {
		if got := users(name); !slices.Equal(got, want) {
			t.Errorf("%s sees the usage of %v, want %v", name, got, want)
		}
	}
}

func jsonNumber(n int64) string {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // never for a number
	}
	return string(b)
}

// TestMalformedQueriesOfAccounting: a query that cannot be read, has unknown fields, or no period
// is refused before anything is searched.
func TestMalformedQueriesOfAccounting(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
	for name, h := range map[string]struct {
		handler handler
		bad     []string
	}{
		"usage":        {h.usage, []string{"", "{", `{"start":10,"end":10}`, `{"start":0,"end":5}`, `{"start":1,"end":2,"x":1}`, "[]"}},
		"events":       {h.events, []string{"{", `{"x":1}`, "[]", `"start"`}},
		"transactions": {h.transactions, []string{"{", `{"x":1}`, "[]"}},
	} {
		for _, q := range h.bad {
			if code := get(t, h.handler, &directory.Caller{}, q, nil); code != http.StatusBadRequest {
				t.Errorf("%s?q=%s: %d", name, q, code)
			}
		}
	}
}

// TestEventsAreHidden: with PrivateData=events, only operators see events.
func TestEventsAreHidden(t *testing.T) {
	h := withDatabase(t)
	db := accttest.Open(t, h.Recorder.Address)
	down := []status.AcctEvent{{Node: "n1", Start: 10, State: "DOWN", Reason: "fan"}}
	if err := db.PutLedger(t.Context(), &store.Ledger{Events: down}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		private []string
		seen    map[string]int // events by the name of the caller
	}{
		{nil, map[string]int{"anna": 1, "opal": 1, "eve": 0}}, // eve is not a user of the cluster
		{[]string{"events"}, map[string]int{"anna": 0, "opal": 1, "eve": 0}},
	} {
		fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: tt.private}))
		for name, want := range tt.seen {
			var out status.EventList
			code := get(t, h.events, h.as(name), "", &out)
			if code != http.StatusOK || out.Kind != "EventList" || out.Items == nil || len(out.Items) != want {
				t.Errorf("PrivateData %v: the response to %s is %d, %+v; want %d events", tt.private, name, code, out, want)
			}
		}
	}
}

// TestWhoMayArchive: only administrators archive and load records, and a file is loaded only
// from the directory of archives.
func TestWhoMayArchive(t *testing.T) {
	h := withDatabase(t)
	h.Recorder.ArchiveDir = t.TempDir()
	post := func(c *directory.Caller, body string) (int, string) {
		w := httptest.NewRecorder()
		h.archive(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), c)
		return w.Code, w.Body.String()
	}
	admin := h.as("cert", directory.Masters)
	for name, tt := range map[string]struct {
		caller *directory.Caller
		body   string
		code   int
	}{
		"a user":                 {h.as("anna"), `{}`, http.StatusForbidden},
		"a coordinator":          {h.as("carl"), `{}`, http.StatusForbidden},
		"an operator":            {h.as("opal"), `{}`, http.StatusForbidden},
		"nobody":                 {h.as("eve"), `{"load":"x"}`, http.StatusForbidden},
		"no JSON":                {admin, `{`, http.StatusBadRequest},
		"an unknown field":       {admin, `{"file":"x"}`, http.StatusBadRequest},
		"a file that is missing": {admin, `{"load":"none.gz"}`, http.StatusUnprocessableEntity},
		"a file elsewhere":       {admin, `{"load":"../../etc/passwd"}`, http.StatusUnprocessableEntity},
		"an absolute path":       {admin, `{"load":"/etc/passwd"}`, http.StatusUnprocessableEntity},
	} {
		if code, body := post(tt.caller, tt.body); code != tt.code {
			t.Errorf("%s: %d %s, want %d", name, code, body, tt.code)
		}
	}
}

// TestCapacity: the capacity of the cluster is that of the nodes that Berth uses.
func TestCapacity(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{})
	node := func(name, managed string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{wire.LabelManaged: managed}}}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}
		return n
	}
	fake.Feed(h.Cluster, node("a", "true"), node("b", ""), node("c", "false"))
	got := h.capacity()
	for name, want := range map[string]int64{"cpu": 8, "mem": 2048, "node": 2, "billing": 8} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
}

// TestAssociationsOfOtherUsersAreHidden: with PrivateData=accounts,users callers see their own
// account and user, coordinators those that they coordinate.
func TestAssociationsOfOtherUsersAreHidden(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
	seen := func(name string) string {
		t.Helper()
		var out status.AcctState
		if code := get(t, h.associations, h.as(name), "", &out); code != http.StatusOK {
			t.Fatalf("%s: %d", name, code)
		}
		var list []string
		for _, a := range out.Accounts {
			list = append(list, a.Name)
		}
		list = append(list, "|")
		for _, u := range out.Users {
			list = append(list, u.Name)
		}
		return strings.Join(list, " ")
	}
	const all = "arts science | anna ben carl opal"
	if got := seen("anna"); got != all {
		t.Errorf("without PrivateData: %s", got)
	}
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"accounts", "users"}}))
	for name, want := range map[string]string{
		"anna": "science | anna", "ben": "arts | ben", "carl": "science | anna carl", "opal": all, "eve": "|",
	} {
		if got := seen(name); got != want {
			t.Errorf("%s sees %q, want %q", name, got, want)
		}
	}
}
