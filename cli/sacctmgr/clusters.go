package sacctmgr

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// listOtherClusters lists the clusters that -M accepts beside the present one. As in Slurm, one
// that does not answer has no control host; it is reported too.
func listOtherClusters(ctx context.Context, o *Options, l *listing) []row {
	var out []row
	for _, m := range jobs.Members(ctx, o.p) {
		if m.Present || !matches(lowerCase(slices.Concat(l.names, l.clusters)), strings.ToLower(m.Name)) {
			continue
		}
		s := newState(&status.AcctState{})
		var original *status.AcctState
		if m.Err == nil {
			original, m.Err = m.Client.Associations(ctx)
		}
		if m.Err != nil {
			slurmerr.Print(o.p.Err, "sacctmgr", m.Err)
		} else {
			s = newState(original)
		}
		s.cluster = m.Name
		out = append(out, s.clusterRow())
	}
	return out
}

// listFederation lists the members of the present cluster's federation, and reports the clusters
// that may be members but do not answer.
func listFederation(ctx context.Context, o *Options, l *listing) []row {
	members, failures := jobs.FederationOf(jobs.Members(ctx, o.p))
	for _, err := range failures {
		slurmerr.Print(o.p.Err, "sacctmgr", err)
	}
	var out []row
	for _, m := range members {
		if !matches(lowerCase(l.names), strings.ToLower(m.Federation)) ||
			!matches(l.clusters, strings.ToLower(m.Name)) {
			continue
		}
		out = append(out, row{values: map[string]string{
			"Federation": m.Federation, "Cluster": m.Name, "ID": strconv.Itoa(m.ID), "FedState": "ACTIVE",
		}})
	}
	return out
}
