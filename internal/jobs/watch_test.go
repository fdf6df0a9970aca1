package jobs

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// A watch that breaks in the middle resumes after the last complete event, and the
// mirror has the right rows.
func TestWatchResumes(t *testing.T) {
	var calls atomic.Int32
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("watch") != "true" || q.Get("user") != "alice" {
			t.Error(r.URL)
		}
		switch calls.Add(1) {
		case 1: // a list in two parts, of which one arrives
			fmt.Fprintln(w, `{"type":"SYNC","revision":"","time":1,"items":[{"id":9,"name":"old"}]}`)
		case 2:
			if q.Get("since") != "" {
				t.Error("the watch resumes from an incomplete list:", q)
			}
			fmt.Fprintln(w, `{"type":"SYNC","revision":"","time":1,"items":[{"id":1,"name":"a\nb"}]}`)
			fmt.Fprintln(w, `{"type":"MORE","revision":"x-5","time":1,"items":[{"id":2,"name":"b"}]}`)
			fmt.Fprint(w, `{"type":"DIFF","revision":"x-6","time":2,"items":[{"id":3,"na`)
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			if q.Get("since") != "x-5" {
				t.Error("the watch resumes from", q.Get("since"))
			}
			fmt.Fprintln(w, `{"type":"DIFF","revision":"x-6","time":3,"items":[{"id":3,"name":"c"}],"gone":[1]}`)
		}
	})
	var m Mirror
	lost := 0
	err := c.Watch(t.Context(), Filter{Users: []string{"alice"}}, func(e *status.JobEvent) error {
		if m.Apply(e); e.Type == status.EventDiff {
			return ErrStopWatch
		}
		return nil
	}, func(error) { lost++ })
	want := []status.Job{{ID: 2, Name: "b"}, {ID: 3, Name: "c"}}
	if got := m.List(); err != nil || lost != 1 || m.Time != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, lost %d times", got, err, lost)
	}
}

// A watch that the server refuses permanently is not repeated.
func TestWatchRefused(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	err := c.Watch(context.Background(), Filter{}, func(*status.JobEvent) error { return nil }, nil)
	if kube.KindOf(err) != kube.Forbidden {
		t.Error(err)
	}
}

// After a break, a watch of nodes starts with all nodes.
func TestWatchNodesResumes(t *testing.T) {
	var calls atomic.Int32
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" || r.URL.Path != "/apis/queue.berth.hpc/v1alpha1/nodes" {
			t.Error(r.URL)
		}
		switch calls.Add(1) {
		case 1:
			fmt.Fprintln(w, `{"type":"SYNC","time":1,"items":[{"name":"n1"},{"name":"n2"}]}`)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, `{"type":"SYNC","time":2,"items":[{"name":"n1"}]}`)
			fmt.Fprintln(w, `{"type":"DIFF","time":3,"gone":["n1"]}`)
		}
	})
	var got []string
	lost := 0
	err := c.WatchNodes(t.Context(), func(e *status.NodeEvent) error {
		got = append(got, fmt.Sprint(e.Type, len(e.Items), e.Gone))
		if len(e.Gone) > 0 {
			return ErrStopWatch
		}
		return nil
	}, func(error) { lost++ })
	if want := []string{
		"SYNC2 []",
		"SYNC1 []",
		"DIFF0 [n1]",
	}; err != nil || lost != 1 ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v, lost %d times", got, err, lost)
	}
}
