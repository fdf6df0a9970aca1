package srun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// testOnly checks whether a job for the step would be accepted, as Slurm's srun does
// even inside of a job. It runs nothing.
func (o *Options) testOnly(ctx context.Context, parts []*option.Parsed, args []string) error {
	s, err := o.submission(parts, args)
	if e, ok := errors.AsType[*slurmerr.Error](err); ok && e.Message != "" && parts[0].RefusedLocally() &&
		!strings.Contains(e.Message, "--propagate=") && !strings.HasSuffix(e.Message, "memory allocation failure") {
		e.After = "allocation failure: No error\n" // Slurm has sent nothing, and prints errno all the same
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		o.warn(p)
	}
	fmt.Fprint(o.p.Err, s.Options)
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	done, err := cluster.Submit(
		ctx,
		&jobs.Submission{Job: s.Job, Components: s.Components, DryRun: true, Forecast: true},
	)
	switch {
	case err == nil && parts[0].Client.Quiet > 0:
		return nil
	case err == nil:
		for _, line := range done.ForecastLines() {
			o.printf("%s", line)
		}
		return nil
	case kube.KindOf(err) != kube.Denied && kube.KindOf(err) != kube.Busy:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "")
	}
	return &slurmerr.Error{Code: 1, Before: jobs.TestOnlyRefusal(ctx, cluster, "srun", s.Job.Partitions, err)}
}
