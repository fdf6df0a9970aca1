package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

func TestLicenses(t *testing.T) {
	s := newServer(t)
	fake.Feed(s.Cluster, fake.Settings(v1alpha1.ClusterSpec{Licenses: map[string]int32{"matlab": 4}}))
	var l status.LicenseList
	code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+"/licenses", nil, &l)
	if code != http.StatusOK || len(l.Items) != 1 || l.Items[0].Total != 4 {
		t.Errorf("%d %+v", code, l)
	}
}

// TestReservations: a reservation is listed with its time and nodes; with
// PrivateData=reservations users see those that they may use.
func TestReservations(t *testing.T) {
	s := newServer(t)
	r := &v1alpha1.Reservation{}
	r.Name = "lab"
	r.Spec = v1alpha1.ReservationSpec{
		StartTime: metav1.NewTime(time.Now().Add(time.Hour)), Duration: 5, Nodes: "n1", Users: []string{"anna"},
		Licenses: map[string]int32{"b": 2, "a": 1},
	}
	fake.Feed(s.Cluster, r)
	names := func(user string) (out []string) {
		var l status.ReservationList
		if code := s.ask(t, s.proxy, user, "GET", wire.QueueRoot+"/reservations", nil, &l); code != http.StatusOK {
			t.Fatal(code)
		}
		for _, x := range l.Items {
			out = append(out, x.Name+" "+x.State+" "+strings.Join(x.Nodes, ",")+" "+x.Licenses)
			if x.End-x.Start != 300 {
				t.Errorf("%+v", x)
			}
		}
		return out
	}
	want := []string{"lab INACTIVE n1 a:1,b:2"}
	if got := names("ben"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	fake.Feed(s.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"reservations"}}))
	if got := names("ben"); len(got) != 0 {
		t.Errorf("ben sees %q", got)
	}
	if got := names("anna"); !slices.Equal(got, want) {
		t.Errorf("anna sees %q", got)
	}
}

// TestMalformedRequests: what cannot be parsed has the code 400.
func TestMalformedRequests(t *testing.T) {
	s := newServer(t)
	operations := wire.QueueRoot + "/operations"
	if code := s.ask(t, s.proxy, "anna", "POST", operations, "no operation", nil); code != http.StatusBadRequest {
		t.Errorf("a text: %d", code)
	}
	noJob := status.Operation{Verb: status.OpCancel}
	if code := s.ask(t, s.proxy, "anna", "POST", operations, noJob, nil); code != http.StatusBadRequest {
		t.Errorf("an operation on nothing: %d", code)
	}
}

// TestAuthentication: every path is for requests of the front proxy only.
func TestAuthentication(t *testing.T) {
	s := newServer(t)
	const aggregator = "system:kube-aggregator"
	for _, path := range []string{
		"/apis", "/apis/queue.berth.hpc", wire.QueueRoot, "/openapi/v2", "/openapi/v3", wire.QueueRoot + "/jobs",
	} {
		if code := s.ask(t, s.proxy, aggregator, "GET", path, nil, &map[string]any{}); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		if code := s.ask(t, nil, "anna", "GET", path, nil, nil); code != http.StatusUnauthorized {
			t.Errorf("%s without a certificate: %d", path, code)
		}
	}
}

// withPriorities is a pool that knows the priorities of jobs.
type withPriorities struct{ *server }

func (withPriorities) PrioritiesView() *status.PriorityList {
	return &status.PriorityList{Items: []status.Priority{
		{ID: 1, User: "anna", Partition: "main", Account: "lab"},
		{ID: 2, User: "ben", Partition: "debug", Account: "arts"},
	}}
}

func (withPriorities) SharesView() *status.ShareList {
	return &status.ShareList{Items: []status.Share{
		{Account: "lab"}, {Account: "lab", User: "anna"}, {Account: "arts", User: "ben"},
	}}
}

// TestPriorities: filters choose jobs, and an id that does not exist chooses none.
func TestPriorities(t *testing.T) {
	s := newServerWith(t, func(s *server) api.Pool { return withPriorities{s} })
	for query, want := range map[string][]int64{
		"": {1, 2}, "?id=2": {2}, "?id=9": nil, "?id=x": nil, "?user=anna": {1}, "?partition=debug": {2},
		"?account=lab&user=ben": nil,
	} {
		var l status.PriorityList
		path := wire.QueueRoot + "/priorities" + query
		if code := s.ask(t, s.proxy, "anna", "GET", path, nil, &l); code != http.StatusOK {
			t.Fatal(code)
		}
		var got []int64
		for _, x := range l.Items {
			got = append(got, x.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	// With PrivateData=usage users see accounts and their own associations.
	fake.Feed(s.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"usage"}}))
	for query, want := range map[string]int{"": 2, "?account=LAB": 2, "?account=arts": 0, "?user=ben": 1} {
		var l status.ShareList
		code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+"/shares"+query, nil, &l)
		if code != http.StatusOK || len(l.Items) != want {
			t.Errorf("shares%s: %d %+v, want %d", query, code, l.Items, want)
		}
	}
}
