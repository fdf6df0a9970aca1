package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
)

const attachOf7 = "/apis/queue.berth.hpc/v1alpha1/jobs/7/attach"

// TestEventsResume: the events of a job are read over as many connections as it takes, until
// the last one.
func TestEventsResume(t *testing.T) {
	var calls atomic.Int32
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != attachOf7 || r.URL.Query().Get("own") != "true" {
			t.Error(r.URL)
		}
		switch calls.Add(1) {
		case 1:
			fmt.Fprint(w, "{\"state\":\"PENDING\",\"reason\":\"Priority\"}\n\n  \n{\"state\":\"RUN")
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, "{\"state\":\"RUNNING\"}\n{\"state\":\"COMPLETED\",\"final\":true}\n{\"state\":\"after the end\"}\n")
		}
	})
	var got []string
	err := c.Events(t.Context(), 7, true, func(e *wire.JobEvent) bool {
		got = append(got, e.State)
		return true
	})
	if want := []string{"PENDING", "RUNNING", "COMPLETED"}; err != nil || !slices.Equal(got, want) || calls.Load() != 4 {
		t.Errorf("%v, %q after %d connections", err, got, calls.Load())
	}
}

// TestEventsEnd: the caller, its context, a refusal, and an event that cannot be decoded end
// the stream.
func TestEventsEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := connected(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"state":"PENDING"}`) })
	calls := 0
	if err := c.Events(ctx, 7, false, func(*wire.JobEvent) bool { calls++; return false }); err != nil || calls != 1 {
		t.Errorf("the caller has enough: %v after %d events", err, calls)
	}
	ended, end := context.WithCancel(ctx)
	if err := c.Events(ended, 7, false, func(*wire.JobEvent) bool { end(); return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	c = connected(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if err := c.Events(ctx, 7, false, nil); kube.KindOf(err) != kube.Forbidden {
		t.Errorf("a refusal: %v", err)
	}
	c = connected(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"state":5}`) })
	if err := c.Events(ctx, 7, false, func(*wire.JobEvent) bool { return true }); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an event that cannot be decoded: %v", err)
	}
}
