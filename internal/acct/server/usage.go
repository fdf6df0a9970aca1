package server

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// usage serves GET usage?q=QUERY. With PrivateData=usage callers see their own
// usage and that of the accounts that they coordinate.
func (s *Server) usage(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	q := &status.UsageQuery{}
	if err := decode(r.URL.Query().Get("q"), q); err != nil || q.Start <= 0 || q.End <= q.Start {
		response.Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, "start and end are required")
		return
	}
	out := &status.UsageList{
		Kind:       "UsageList",
		APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Cluster:    s.cluster(),
	}
	err := s.search(r.Context(), func(ctx context.Context) (err error) {
		out.Items, err = s.Recorder.Report(ctx, q)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if !s.mayAll(c, authz.Records, authz.Usage) {
		kept := out.Items[:0]
		for _, u := range out.Items {
			if s.may(c, u.User, u.Account, authz.Records, authz.Usage) {
				kept = append(kept, u)
			}
		}
		out.Items = kept
	}
	out.Capacity = s.capacity()
	if err := s.search(
		r.Context(),
		func(ctx context.Context) error { return s.addAvailable(ctx, q, out) },
	); err != nil {
		s.fail(w, r, err)
		return
	}
	response.JSON(w, r, out)
}

// addAvailable adds what the nodes could have provided between q.Start and q.End,
// by the recorded events.
func (s *Server) addAvailable(ctx context.Context, q *status.UsageQuery, out *status.UsageList) error {
	events, err := s.Recorder.Events(ctx, &status.EventQuery{Start: q.Start, End: q.End})
	if err != nil {
		return err
	}
	out.Reported, out.Down = available(events, q.Start, min(q.End, s.Now().Unix()))
	if q.Reservations {
		out.Reservations, err = s.Recorder.Reservations(ctx, q.Start, q.End)
	}
	return err
}

// available returns the TRES-seconds of the cluster between start and end, and
// those of its nodes while they were unavailable.
func available(events []status.AcctEvent, start, end int64) (reported, down map[string]int64) {
	reported, down = map[string]int64{}, map[string]int64{}
	for i := range events {
		e := &events[i]
		sum := reported
		if e.Node != "" {
			sum = down
		}
		last := end
		if e.End != 0 {
			last = min(end, e.End)
		}
		if seconds := last - max(start, e.Start); seconds > 0 {
			for name, n := range record.ParseTRES(e.TRES) {
				sum[name] += n * seconds
			}
		}
	}
	return reported, down
}

// capacity returns the sum of the nodes' resources.
func (s *Server) capacity() map[string]int64 {
	out := map[string]int64{}
	for _, n := range s.Cluster.Nodes.List() {
		if n.Labels[wire.LabelManaged] == "false" {
			continue
		}
		out["cpu"] += n.Status.Allocatable.Cpu().Value()
		out["mem"] += n.Status.Allocatable.Memory().Value() >> 20
		out["node"]++
	}
	out["billing"] = out["cpu"]
	return out
}
