package replica

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// anyone is a Feed.Peer that permits every request.
func anyone(*http.Request) error { return nil }

// serve starts a TLS server and returns its address.
func serve(t *testing.T, h http.HandlerFunc) Address {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return Address{URL: s.URL, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

// newReader returns a reader with empty stores whose leader has this address. Its clock
// stands at now.
func newReader(a Address, now *time.Time) *Leader {
	return &Leader{
		Cluster: fake.Cluster(interceptor.Funcs{}),
		Link:    &Link{Find: func(context.Context) (Address, error) { return a, nil }},
		Now:     func() time.Time { return *now },
	}
}

// TestCatchUpWaitsForTheLeadersVersions: a reader that has caught up has the objects that
// the leader had, and its plan.
func TestCatchUpWaitsForTheLeadersVersions(t *testing.T) {
	leader := fake.Cluster(interceptor.Funcs{})
	plan := map[int64]control.Planned{7: {Reason: "Resources", Priority: 3, NodeCPUs: 64, Outcomes: "mu"}}
	feed := &Feed{
		Cluster: leader, Peer: anyone,
		Plan: func() (map[int64]control.Planned, uint64) { return plan, 1 },
	}
	responded := make(chan struct{}, 10)
	now := time.Unix(1000, 0)
	reader := newReader(serve(t, func(w http.ResponseWriter, r *http.Request) {
		feed.ServeHTTP(w, r)
		responded <- struct{}{}
	}), &now)
	b := fake.Job(7, "anna", nil)
	fake.Feed(leader, b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reader.CatchUp(t.Context())
	}()
	<-responded
	select {
	case <-done:
		t.Error("the reader has caught up without the job")
	default:
	}
	reader.Cluster.Jobs.Apply(b.DeepCopy())
	<-done
	if p, ok := reader.Planned(7); !ok || !reflect.DeepEqual(p, plan[7]) {
		t.Errorf("the plan for job 7: %+v, want %+v", p, plan[7])
	}
	if _, ok := reader.Planned(8); ok {
		t.Error("the plan has a job that is not in the leader's")
	}
}

// filled returns a Planned in which every field has a value.
func filled(t *testing.T) control.Planned {
	t.Helper()
	var p control.Planned
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); x := f.Addr().Interface().(type) {
		case *time.Time:
			*x = time.Unix(1000, 0)
		case *[]string:
			*x = []string{"n1", "n2"}
		case *string:
			*x = "text"
		case *int64:
			*x = 5
		case *int32:
			*x = 6
		default:
			t.Fatalf("add the type %s of %s to this test", f.Type(), v.Type().Field(i).Name)
		}
	}
	return p
}

// TestEveryFieldOfAPlanArrives: a reader gets all of what the plan has about a job, and
// each change of it.
func TestEveryFieldOfAPlanArrives(t *testing.T) {
	p := filled(t)
	sent := entryOf(7, &p)
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got entry
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if arrived := got.planned(); got.ID != 7 || !reflect.DeepEqual(arrived, p) {
		t.Errorf("job %d: %+v arrived, %+v was sent", got.ID, arrived, p)
	}
	for i := range reflect.TypeOf(p).NumField() {
		other := p
		reflect.ValueOf(&other).Elem().Field(i).SetZero()
		if same(&p, &other) {
			t.Errorf("a change of %s is not sent", reflect.TypeOf(p).Field(i).Name)
		}
	}
}

// TestCallersShareRequests: a caller waits for a request that is sent after its call, and
// shares it with all others who came meanwhile.
func TestCallersShareRequests(t *testing.T) {
	now := time.Unix(1000, 0)
	release := make(chan struct{})
	reader := newReader(Address{}, &now)
	finds := 0
	reader.Link.Find = func(context.Context) (Address, error) {
		finds++ // one request is sent at a time
		<-release
		return Address{}, errors.New("no leader")
	}
	first := reader.join()
	second := reader.join()
	if first == second {
		t.Error("a caller waits for a request that was sent before")
	}
	for range 10 {
		if reader.join() != second {
			t.Error("callers who came meanwhile do not share one request")
		}
	}
	close(release)
	<-first.done
	<-second.done
	if first.ok || second.ok || finds != 2 {
		t.Errorf("%d requests, successful: %v, %v", finds, first.ok, second.ok)
	}
	if third := reader.join(); third == first || third == second {
		t.Error("a later caller gets an old response")
	}
}

// TestSilentLeaderGetsNoRequestForAWhile: after a request that timed out, none is sent for a while.
// After one that failed at once, the next is sent without a pause.
func TestSilentLeaderGetsNoRequestForAWhile(t *testing.T) {
	now := time.Unix(1000, 0)
	reader := newReader(Address{}, &now)
	failure := errors.New("connection refused")
	reader.Link.Find = func(context.Context) (Address, error) { return Address{}, failure }
	ask := func() bool {
		f := reader.join()
		if f != nil {
			<-f.done
		}
		return f != nil
	}
	for range 2 {
		if !ask() {
			t.Error("a leader that refuses is left alone")
		}
	}
	failure = fmt.Errorf("no response: %w", context.DeadlineExceeded)
	if !ask() {
		t.Error("no request was sent")
	}
	now = now.Add(leaderRetry - time.Second)
	if ask() {
		t.Error("a request was sent to a leader that is silent")
	}
	reader.CatchUp(t.Context()) // returns at once
	now = now.Add(time.Second)
	if !ask() {
		t.Error("the leader is left alone for ever")
	}
}

// TestVersionsThatDoNotArriveAreSkipped: a version that did not arrive in time delays only
// the callers of that time; a newer one is waited for again.
func TestVersionsThatDoNotArriveAreSkipped(t *testing.T) {
	now := time.Unix(1000, 0)
	reader := newReader(Address{}, &now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, kind := range []versions{
		{Jobs: 5}, {Nodes: 5}, {Partitions: 5}, {Reservations: 5}, {Users: 5}, {Accounts: 5}, {QOS: 5}, {Settings: 5},
	} {
		if err := reader.await(ctx, kind); err == nil {
			t.Errorf("%+v: not waited for", kind)
		}
	}
	reader.skipVersions(versions{Jobs: 5, Nodes: 3})
	if err := reader.await(ctx, versions{Jobs: 5, Nodes: 3}); err != nil {
		t.Errorf("skipped versions are waited for: %v", err)
	}
	for _, v := range []versions{{Jobs: 6}, {Jobs: 5, Nodes: 4}, {Users: 1}} {
		if err := reader.await(ctx, v); err == nil {
			t.Errorf("%+v: not waited for", v)
		}
	}
}

// TestPlanIsRequestedWhenItIsOld: the plan is part of a response only if the known one is
// old, and then only its changes.
func TestPlanIsRequestedWhenItIsOld(t *testing.T) {
	plan, serial := map[int64]control.Planned{1: {Priority: 1}, 2: {Priority: 2}}, uint64(1)
	feed := &Feed{
		Cluster: fake.Cluster(interceptor.Funcs{}), Peer: anyone,
		Plan: func() (map[int64]control.Planned, uint64) { return plan, serial },
	}
	var mu sync.Mutex
	var queries []url.Values
	now := time.Unix(1000, 0)
	reader := newReader(serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		queries = append(queries, r.URL.Query())
		mu.Unlock()
		feed.ServeHTTP(w, r)
	}), &now)
	catchUp := func(want string) {
		t.Helper()
		reader.CatchUp(t.Context())
		mu.Lock()
		defer mu.Unlock()
		if q := queries[len(queries)-1]; q.Get("plan") != want || want != "" && q.Get("serial") == "" {
			t.Errorf("request %d: %v", len(queries), q)
		}
	}
	catchUp("yes")
	catchUp("")
	plan, serial = map[int64]control.Planned{2: {Priority: 9}}, 2
	catchUp("")
	if p, _ := reader.Planned(2); p.Priority != 2 {
		t.Errorf("a plan that was not requested has arrived: %+v", p)
	}
	now = now.Add(maxPlanAge)
	catchUp("yes")
	if p, _ := reader.Planned(2); p.Priority != 9 {
		t.Errorf("job 2: %+v", p)
	}
	if _, ok := reader.Planned(1); ok {
		t.Error("job 1 is still in the plan")
	}
	if last := queries[len(queries)-1]; last.Get("epoch") == "" || last.Get("serial") != "1" {
		t.Errorf("the whole plan is requested again: %v", last)
	}
}

// TestFailedResponsesKeepThePlan: a response that is no state changes nothing.
func TestFailedResponsesKeepThePlan(t *testing.T) {
	body, code := `{"epoch":"e","serial":1,"whole":true,"plan":[{"i":7,"p":3}]}`, http.StatusOK
	now := time.Unix(1000, 0)
	reader := newReader(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}), &now)
	reader.CatchUp(t.Context())
	for _, tt := range []struct {
		code int
		body string
	}{
		{http.StatusUnauthorized, "not a peer"},
		{http.StatusInternalServerError, `{"epoch":"f","whole":true}`},
		{http.StatusOK, `{"epoch":"f","whole":true`},
		{http.StatusOK, `<html>`},
		{http.StatusOK, ``},
	} {
		code, body = tt.code, tt.body
		now = now.Add(maxPlanAge)
		if _, err := reader.query(); err == nil {
			t.Errorf("%d %q is a state", tt.code, tt.body)
		}
		reader.CatchUp(t.Context())
		if p, ok := reader.Planned(7); !ok || p.Priority != 3 {
			t.Errorf("after %d %q: %+v, %v", tt.code, tt.body, p, ok)
		}
	}
}

// TestWholePlanIsSentAfterManyRemovals: after too many jobs have left the plan, readers get all of
// it once more, and miss nothing.
func TestWholePlanIsSentAfterManyRemovals(t *testing.T) {
	plan, serial := map[int64]control.Planned{}, uint64(1)
	f := &Feed{Plan: func() (map[int64]control.Planned, uint64) { return plan, serial }}
	for id := range int64(maxGone + 2) {
		plan[id+1] = control.Planned{Priority: 1}
	}
	k := (&knownPlan{}).with(request(f, &knownPlan{}), time.Unix(0, 0))
	plan, serial = map[int64]control.Planned{5: {Priority: 1}}, 2
	first := request(f, k)
	if first.Whole || len(first.Gone) != maxGone+1 {
		t.Errorf("whole %v, %d jobs gone", first.Whole, len(first.Gone))
	}
	second := request(f, k)
	if !second.Whole || len(second.Plan) != 1 || second.Epoch == k.epoch {
		t.Errorf("whole %v, %d entries, epoch %s after %s", second.Whole, len(second.Plan), second.Epoch, k.epoch)
	}
	if n := k.with(second, time.Unix(0, 0)); len(n.jobs) != 1 || n.jobs[5].Priority != 1 {
		t.Errorf("the reader's plan has %d jobs", len(n.jobs))
	}
}

// request returns the state that f sends to a reader with the plan k.
func request(f *Feed, k *knownPlan) *state {
	s := &state{}
	f.fill(s, k.epoch, k.serial)
	return s
}

// TestFeedSettlesBeforeItReadsTheVersions: the versions are those after the wait for
// admitted jobs.
func TestFeedSettlesBeforeItReadsTheVersions(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	f := &Feed{Cluster: c, Peer: anyone, Settled: func(context.Context) { fake.Feed(c, fake.Job(1, "anna", nil)) }}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path, nil))
	var s state
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Versions.Jobs != c.Jobs.Version() || s.Versions.Jobs == 0 {
		t.Errorf("%+v, %v; the store has %d", s.Versions, err, c.Jobs.Version())
	}
	if strings.Contains(w.Body.String(), "plan") {
		t.Errorf("the plan is sent to a reader that has it: %s", w.Body)
	}
}

// TestVersionsCoverEveryStore: each store has its own version in the state.
func TestVersionsCoverEveryStore(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	r, q := &v1alpha1.Reservation{}, &v1alpha1.QOS{}
	r.Name, q.Name = "r", "q"
	fake.Feed(c, fake.Job(1, "anna", nil), fake.User("anna", 1), fake.Partition("p", nil),
		fake.Settings(v1alpha1.ClusterSpec{}), r, q)
	got := versionsOf(c)
	want := versions{
		Jobs: c.Jobs.Version(), Users: c.Users.Version(), Partitions: c.Partitions.Version(),
		Settings: c.Settings.Version(), Reservations: c.Reservations.Version(), QOS: c.QOS.Version(),
	}
	if got != want || got.Jobs == 0 || got.QOS <= got.Jobs {
		t.Errorf("%+v, want %+v", got, want)
	}
}
