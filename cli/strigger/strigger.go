// Package strigger says how a cluster tells of events: Kubernetes has its own
// ways, and this command names them.
package strigger

import (
	"context"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// Options are what strigger needs.
type Options struct{ p *stdio.Process }

// New makes the command.
func New(p *stdio.Process) *Options { return &Options{p: p} }

// Run parses args and refuses: nothing here runs programs for others.
func (o *Options) Run(_ context.Context, args []string) error {
	v, _, err := option.Strigger.Begin(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	return slurmerr.New(slurmerr.Refused, "triggers are not possible here: no process of the cluster runs programs of its users").
		Hint("when a job ends: sbatch --dependency=afterany:JOB, or kubectl wait batchjobs --for=jsonpath='{.status.state}'=COMPLETED").
		Hint("when a node changes: kubectl get nodes --watch, or an alert on the kube-state-metrics of nodes").
		Hint("when the scheduler or its database fails: the readiness of its Deployment, and its log")
}
