package squeue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
)

// response returns the response of the queue API for the default list of n pending jobs.
func response(tb testing.TB, n int) []byte {
	type row map[string]any
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{"id": 1000 + i, "name": "job", "user": "alice", "partition": "main", "state": "PENDING",
			"reason": "Priority", "priority": 1000 + i%7, "timeLimit": 60, "nodes": 1 + i%4}
	}
	data, err := json.Marshal(map[string]any{"kind": "JobList", "time": 1795263065, "items": rows})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// BenchmarkList runs squeue: connect with TLS, request, decode, sort, print.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		data := response(b, n)
		s := httptest.NewTLSServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }),
		)
		b.Cleanup(s.Close)
		p := &stdio.Process{
			Streams:   stdio.Streams{Out: io.Discard, Err: io.Discard},
			LookupEnv: func(string) (string, bool) { return "", false },
			Now:       time.Now,
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				o := New(p, func() (Lister, error) {
					api, err := kube.New(p, &kube.Config{Server: s.URL, Insecure: true, Namespace: "user-alice"})
					return jobs.New(api), err
				})
				if err := o.Run(context.Background(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// memory is a fake of the cluster with rows in memory.
type memory struct {
	Lister
	rows []status.Job
}

func (m memory) Jobs(context.Context, jobs.Filter) (*status.JobList, error) {
	return &status.JobList{Time: 100, Items: append([]status.Job(nil), m.rows...)}, nil
}

func (m memory) User() string { return "alice" }

// Watch sends the rows in two events, and then none.
func (m memory) Watch(ctx context.Context, _ jobs.Filter, each func(*status.JobEvent) error, _ func(error)) error {
	for _, e := range []status.JobEvent{{Type: status.EventSync, Time: 100}, {Type: status.EventMore, Revision: "x-1", Time: 100, Items: m.rows}} {
		if err := each(&e); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestIterateListsUntilStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out bytes.Buffer
	times := 0
	p := &stdio.Process{
		Streams:   stdio.Streams{Out: &out, Err: io.Discard},
		LookupEnv: func(string) (string, bool) { return "", false },
		Now: func() time.Time {
			if times++; times == 8 {
				cancel()
			}
			return time.Unix(100, 0).UTC()
		},
	}
	o := New(p, func() (Lister, error) { return memory{rows: []status.Job{{ID: 5, State: "RUNNING", Start: 40}}}, nil })
	err := o.Run(ctx, []string{"-h", "-i", "1", "-o", "%i %M"})
	want := "5 1:00\n" // without the time: -h
	if !errors.Is(err, context.Canceled) && err != nil || !bytes.HasPrefix(out.Bytes(), []byte(want+"\n"+want)) {
		t.Errorf("%v: %q", err, out.String())
	}
}
