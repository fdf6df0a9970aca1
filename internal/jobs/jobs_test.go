package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// connected returns a client of a server with this handler; its nonce is fixed.
func connected(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	api, err := kube.New(
		&stdio.Process{},
		&kube.Config{Server: s.URL, Insecure: true, Namespace: "user-alice", Token: "t"},
	)
	if err != nil {
		t.Fatal(err)
	}
	c := New(api)
	c.nonce = func() string { return "abc" }
	return c
}

const batchJobs = "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs"

func TestSubmit(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != batchJobs {
			t.Error(r.Method, r.URL.Path)
		}
		// The object as the API server's own type sees it.
		var got v1alpha1.BatchJob
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			t.Error(err)
		}
		script, env := unzstd(t, got.Spec.Script), unzstd(t, got.Spec.Environment)
		if got.Name != "j-abc" || got.Spec.Job.Name != "ring" || script != "#!/bin/sh\n" ||
			env != "A=1\x00B=two words\x00" {
			t.Errorf("%+v %q %q", got, script, env)
		}
		got.Spec.JobID, got.Spec.User, got.Spec.Partition = 42, "alice", "main"
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&got)
	})
	got, err := c.Submit(context.Background(), &Submission{
		Job: job.Job{Name: "ring"}, Script: []byte("#!/bin/sh\n"), Environment: []string{"A=1", "B=two words"},
	})
	want := &Submitted{ID: 42, Namespace: "user-alice", Name: "j-abc", Partition: "main", User: "alice"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

func unzstd(t *testing.T, data []byte) string {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := r.DecodeAll(data, nil)
	if err != nil {
		t.Error(err)
	}
	return string(out)
}

// A submission whose first answer is lost finds the object that it created.
func TestSubmitAfterLostResponse(t *testing.T) {
	var posts, gets atomic.Int32
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "POST" && posts.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case r.Method == "POST":
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","code":409,"reason":"AlreadyExists","message":"there"}`)
		case r.URL.Path == batchJobs+"/j-abc":
			gets.Add(1)
			fmt.Fprint(w, `{"metadata":{"name":"j-abc","namespace":"user-alice"},"spec":{"jobID":7,"job":{}}}`)
		}
	})
	waited := 0
	got, err := c.Submit(context.Background(), &Submission{Waiting: func(error) { waited++ }})
	if err != nil || got.ID != 7 || posts.Load() != 2 || gets.Load() != 1 || waited != 1 {
		t.Errorf("%+v %v, %d posts, %d gets, %d waits", got, err, posts.Load(), gets.Load(), waited)
	}
}

func TestRefusalIsNotRetried(t *testing.T) {
	var posts atomic.Int32
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		if r.URL.Query().Get("dryRun") != "All" {
			t.Error("no dry run:", r.URL)
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(
			w,
			`{"kind":"Status","code":403,"reason":"Forbidden","message":"admission webhook \"b.berth.hpc\" denied the request: Invalid partition name specified"}`,
		)
	})
	_, err := c.Submit(context.Background(), &Submission{DryRun: true})
	if kube.KindOf(err) != kube.Denied || err.Error() != "Invalid partition name specified" || posts.Load() != 1 {
		t.Errorf("%v after %d posts", err, posts.Load())
	}
}

// SubmitWithRetry retries while the queue is full, with growing pauses.
func TestSubmitWithRetry(t *testing.T) {
	for _, tt := range []struct{ room, most, posts int }{{3, 15, 3}, {99, 4, 5}, {1, 0, 1}, {2, 0, 1}} {
		var posts atomic.Int32
		c := connected(t, func(w http.ResponseWriter, _ *http.Request) {
			if int(posts.Add(1)) < tt.room {
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(
					w,
					`{"kind":"Status","code":429,"message":"admission webhook \"b.berth.hpc\" denied the request: Resource temporarily unavailable"}`,
				)
				return
			}
			fmt.Fprint(w, `{"metadata":{"name":"j-abc"},"spec":{"jobID":7,"job":{}}}`)
		})
		var pauses []int
		_, err := SubmitWithRetry(tt.most, func(n int) bool { pauses = append(pauses, n); return true },
			func() (*Submitted, error) { return c.Submit(context.Background(), &Submission{}) })
		full := kube.KindOf(err) == kube.Busy && err.Error() == "Resource temporarily unavailable"
		if int(posts.Load()) != tt.posts || len(pauses) != tt.posts-1 || full != (tt.room > tt.posts) ||
			err != nil && !full {
			t.Errorf("%+v: %d posts, pauses %v, %v", tt, posts.Load(), pauses, err)
		}
		if n := len(pauses); n > 0 && pauses[n-1] != n {
			t.Errorf("pauses %v", pauses)
		}
	}
}

func TestSubmitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := connected(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	_, err := c.Submit(ctx, &Submission{Waiting: func(error) { cancel() }})
	if err == nil {
		t.Error("no error")
	}
}

func TestJobs(t *testing.T) {
	rows := []status.Job{{ID: 3, Name: "a \"b\" ü \x00", State: "PENDING", TimeLimit: -1}, {ID: 4, Requeue: true}}
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if want := "fields=id%2Cstate&id=3%2C4&nodes=n1%2Cn2&state=all&user=alice"; r.URL.RawQuery != want {
			t.Errorf("query %s, want %s", r.URL.RawQuery, want)
		}
		_ = json.NewEncoder(w).Encode(status.JobList{Time: 99, Items: rows})
	})
	got, err := c.Jobs(
		context.Background(),
		Filter{IDs: []string{"3", "4"}, Users: []string{"alice"}, States: AllStates,
			Nodes: []string{"n1", "n2"}, Fields: []string{"id", "state"}},
	)
	if err != nil || got.Time != 99 || !reflect.DeepEqual(got.Items, rows) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestOperate(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		want := `{"kind":"Operation","apiVersion":"queue.berth.hpc/v1alpha1","verb":"cancel","jobs":["3"]}`
		if r.Method != "POST" || string(body) != want {
			t.Errorf("%s %s, want %s", r.Method, body, want)
		}
		fmt.Fprint(w, `{"items":[{"job":"3","error":"Access/permission denied"}]}`)
	})
	got, err := c.Operate(context.Background(), status.Operation{Verb: status.OpCancel, Jobs: []string{"3"}})
	if err != nil || len(got.Items) != 1 || got.Items[0].Error != ErrDenied {
		t.Errorf("%+v %v", got, err)
	}
}

// Jobs that the server has not handled in time are sent again.
func TestOperateResendsLateJobs(t *testing.T) {
	var requests [][]string
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		var op status.Operation
		_ = json.NewDecoder(r.Body).Decode(&op)
		if requests = append(requests, op.Jobs); len(requests) == 1 {
			fmt.Fprintf(
				w,
				`{"items":[{"job":"3"},{"job":"4","error":"late","code":%q},{"job":"5","error":"late","code":%q}]}`,
				status.CodeNotInTime,
				status.CodeNotInTime,
			)
			return
		}
		fmt.Fprint(w, `{"items":[{"job":"4"},{"job":"5","error":"Invalid job id specified"}]}`)
	})
	got, err := c.Operate(context.Background(), status.Operation{Verb: status.OpCancel, Users: []string{"alice"}})
	want := []status.OperationStatus{{Job: "3"}, {Job: "4"}, {Job: "5", Error: "Invalid job id specified"}}
	if err != nil || !reflect.DeepEqual(got.Items, want) || !reflect.DeepEqual(requests, [][]string{nil, {"4", "5"}}) {
		t.Errorf("%+v %v, requests %v", got, err, requests)
	}
}

func TestQueueMissing(t *testing.T) {
	for code, want := range map[int]string{404: "has no Berth queue", 503: "scheduler does not answer"} {
		c := connected(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		_, err := c.Nodes(context.Background())
		var e *kube.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestNonce(t *testing.T) {
	a, b := nonce(), nonce()
	if len(a) != 20 || a == b || strings.ToLower(a) != a {
		t.Error(a, b)
	}
}

func TestOwnJobs(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != batchJobs || !strings.Contains(r.Header.Get("Accept"), "as=Table") {
			t.Error(r.URL.Path, r.Header)
		}
		fmt.Fprint(
			w,
			`{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"JobID"},{"name":"Name"},{"name":"User"},{"name":"Partition"},{"name":"State"},{"name":"Reason"},{"name":"Submitted"}],
			"rows":[{"cells":["j-abc",7,"ring","alice","main",null,null,"5m"],"object":{"metadata":{"name":"j-abc","namespace":"user-alice","creationTimestamp":"1970-01-01T00:01:00Z"}}}]}`,
		)
	})
	got, err := c.OwnJobs(context.Background())
	want := []status.Job{
		{
			ID:        7,
			Name:      "ring",
			User:      "alice",
			Partition: "main",
			State:     "PENDING",
			Submit:    60,
			Namespace: "user-alice",
			Object:    "j-abc",
		},
	}
	if err != nil || !reflect.DeepEqual(got.Items, want) {
		t.Errorf("%+v %v", got, err)
	}
}

// The name of a user is data: it is never read as a path or query of the API.
func TestOwnerIsLookedUpByName(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		switch path, _ := strings.CutPrefix(r.URL.Path, "/apis/berth.hpc/v1alpha1/users"); path {
		case "/bob", "/bob/status":
			fmt.Fprint(w, `{"metadata":{"name":"bob"},"spec":{"uid":7,"gid":8,"namespace":"user-bob"}}`)
		case "", "/":
			fmt.Fprint(w, `{"kind":"UserList","items":[{"metadata":{"name":"bob"},"spec":{"uid":7,"gid":8}}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","code":404,"reason":"NotFound","message":"not found"}`)
		}
	})
	for _, name := range []string{"bob", "7"} {
		if o, err := c.Owner(t.Context(), name); err != nil || o == nil || o.Name != "bob" || o.UID != 7 {
			t.Errorf("%q: %+v, %v", name, o, err)
		}
	}
	for _, name := range []string{"", "8", "-7", "eve", "bob/status", "bob?watch=1", "eve/../bob", "bob#", "a b", "%zz"} {
		if o, err := c.Owner(t.Context(), name); err != nil || o != nil {
			t.Errorf("%q: %+v, %v; want none", name, o, err)
		}
	}
}
