package power

import (
	"context"
	"errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
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
	// Progress returns what is known of nodes that were requested and have not come, by name.
	// Nodes of which nothing is known may be missing. If neither the request nor what it creates
	// says which Node object is which node, Progress writes the names to the objects. With Cluster
	// API, which replaces Machines on its own, nodes may also be some that run.
	Progress(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) (map[string]Progress, error)
}

// Progress is what is known of a node.
type Progress struct {
	Text    string // why it has not come; "": unknown
	Refused bool   // it does not come
	Leaves  bool   // it runs, and what brought it removes it
}

// providers are the Provider that calls the one that the pool names.
type providers struct{ programs, karpenter, provisioning, clusterAPI Provider }

// newProviders returns the providers that pools may name.
func newProviders(c *control.Cluster) providers {
	return providers{
		programs: programs{}, karpenter: karpenter{c.Client},
		provisioning: provisioning{c}, clusterAPI: clusterAPI{c},
	}
}

func (p providers) of(pool *v1alpha1.NodePool) Provider {
	switch {
	case pool.Spec.Karpenter != nil:
		return p.karpenter
	case pool.Spec.ProvisioningRequest != nil:
		return p.provisioning
	case pool.Spec.ClusterAPI != nil:
		return p.clusterAPI
	}
	return p.programs
}

func (p providers) Resume(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	return p.of(pool).Resume(ctx, pool, nodes)
}

func (p providers) Suspend(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	return p.of(pool).Suspend(ctx, pool, nodes)
}

func (p providers) Failed(ctx context.Context, pool *v1alpha1.NodePool, nodes []string) error {
	return p.of(pool).Failed(ctx, pool, nodes)
}

func (p providers) Progress(
	ctx context.Context, pool *v1alpha1.NodePool, nodes []string,
) (map[string]Progress, error) {
	return p.of(pool).Progress(ctx, pool, nodes)
}

// errNoProvider is the error for a pool that nothing brings nodes of.
var errNoProvider = errors.New("nothing brings the nodes: the pool names nothing that does")

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

func (programs) Progress(context.Context, *v1alpha1.NodePool, []string) (map[string]Progress, error) {
	return nil, nil
}

// runProgram runs a program of the site with the nodes as a host list, for ResumeTimeout at
// most.
func runProgram(ctx context.Context, pool *v1alpha1.NodePool, path string, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, pools.ResumeTimeout(&pool.Spec))
	defer cancel()
	return siteprogram.Run(ctx, path, []string{hostlist.Fold(nodes)}, []string{"BERTH_NODE_POOL=" + pool.Name})
}
