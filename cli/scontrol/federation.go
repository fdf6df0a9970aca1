package scontrol

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
)

// showFederation prints the members of the present cluster's federation, in Slurm's form; nothing
// if it is in none.
func showFederation(ctx context.Context, o *Options, _ Cluster, _ []string) error {
	members, failures := jobs.FederationOf(jobs.Members(ctx, o.p))
	var b strings.Builder
	for i, m := range members {
		label := "Sibling:    "
		if i == 0 {
			fmt.Fprintf(&b, "Federation: %s\n", m.Federation)
			label = "Self:       "
		}
		fmt.Fprintf(&b, "%s%s:%s:0 ID:%d FedState:ACTIVE Features:\n", label, m.Name, m.Host, m.ID)
	}
	for _, err := range failures {
		slurmerr.Print(o.p.Err, "scontrol", err)
	}
	return o.p.Print(b.String())
}
