package power

import (
	"context"
	"errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/sched/siteprogram"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// Provider brings and removes the nodes of pools. All calls can be repeated with the same
// nodes: after a crash it is not known whether a request was accepted.
type Provider interface {
	// Resume requests nodes, which are needed together. It returns when the request is accepted;
	// each node then registers itself as a Node object with its name, or does not come.
	Resume(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error
	// Suspend removes nodes, or withdraws the request for those that have not come.
	Suspend(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error
	// Failed reports nodes that did not come in time, or came with less than promised. They
	// are suspended, too.
	Failed(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error
}

// errNoProvider is the error for a pool that nothing brings nodes of.
var errNoProvider = errors.New("nothing brings the nodes: spec.program is not set")

// programs is the Provider of pools with programs of the site.
type programs struct{}

func (programs) Resume(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	if pool.Spec.Program == nil {
		return errNoProvider
	}
	return runProgram(ctx, pool, pool.Spec.Program.Resume, nodes)
}

func (programs) Suspend(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	if pool.Spec.Program == nil {
		return errNoProvider
	}
	return runProgram(ctx, pool, pool.Spec.Program.Suspend, nodes)
}

func (programs) Failed(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	if pool.Spec.Program == nil || pool.Spec.Program.ResumeFail == "" {
		return nil
	}
	return runProgram(ctx, pool, pool.Spec.Program.ResumeFail, nodes)
}

// runProgram runs a program of the site with the nodes as a host list, for ResumeTimeout at
// most.
func runProgram(ctx context.Context, pool *v1alpha1.NodePool, path string, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, pools.ResumeTimeout(&pool.Spec))
	defer cancel()
	return siteprogram.Run(ctx, path, []string{hostlist.Fold(nodes)}, []string{"BERTH_NODE_POOL=" + pool.Name})
}
