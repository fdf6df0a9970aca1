package server

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// usage answers GET usage?q=QUERY. With PrivateData=usage a caller sees its
// own and that of the accounts it coordinates.
func (s *Server) usage(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	q := &status.UsageQuery{}
	if err := decode(r.URL.Query().Get("q"), q); err != nil || q.Start <= 0 || q.End <= q.Start {
		api.Refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, "start and end are needed")
		return
	}
	var see func(account, user string) bool
	if s.private("usage") && !c.Operator {
		coordinates := s.coordinates(c)
		see = func(account, user string) bool { return coordinates[account] || c.User != nil && user == c.User.Name }
	}
	out := &status.UsageList{Kind: "UsageList", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion, Cluster: s.cluster()}
	err := s.search(r.Context(), func(ctx context.Context) (err error) {
		out.Items, err = s.Recorder.Report(ctx, q)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if see != nil {
		kept := out.Items[:0]
		for _, u := range out.Items {
			if see(u.Account, u.User) {
				kept = append(kept, u)
			}
		}
		out.Items = kept
	}
	out.Capacity = s.capacity()
	s.queue.API().Reply(w, r, out)
}

// capacity is what the nodes have together.
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
