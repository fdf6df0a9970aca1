package jobs

import (
	"context"
	"errors"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// namer knows the name of the cluster.
type namer interface {
	Cluster(ctx context.Context, names []string) (string, error)
}

// ClusterChecks returns the checks of the option (-M) and of the variable that name
// clusters, with a connection to the present one.
func ClusterChecks[C namer](ctx context.Context, name string, connect func() (C, error)) option.Checks {
	check := func(text string) error {
		c, err := connect()
		if err == nil {
			_, err = c.Cluster(ctx, strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
		}
		return err
	}
	return option.Checks{name: check, "SLURM_CLUSTERS": func(text string) error {
		err := check(text)
		if e, ok := errors.AsType[*slurmerr.Error](err); ok {
			e.Message = strings.Replace(e.Message, "entry for --cluster.", "entry for SLURM_CLUSTERS.", 1)
		}
		return err
	}}
}
