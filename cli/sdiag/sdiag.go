// Package sdiag shows statistics of the scheduler.
package sdiag

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the access to a cluster that sdiag needs.
type Cluster interface {
	Statistics(ctx context.Context) (*status.Diag, error)
	ResetStatistics(ctx context.Context) error
	Cluster(ctx context.Context, names []string) (string, error)
}

// Options are the dependencies and the options of sdiag.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	reset    bool
	order    func(a, b status.RequestStats) int
	clusters []string
}

// New returns the command. connect is called once, after the command line has been
// parsed.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, _, err := option.Sdiag.ParseAndReport(
		args,
		o.p.LookupEnv,
		o.p.Print,
		o.p.Warn,
	) // Slurm's sdiag ignores other words, too
	if v == nil || err != nil {
		return err
	}
	o.reset, o.clusters = v.Has("reset"), v.List("cluster")
	o.order = byCount
	switch {
	case v.Has("sort-by-id"):
		o.order = func(a, b status.RequestStats) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
		}
	case v.Has("sort-by-time2"):
		o.order = func(a, b status.RequestStats) int {
			return cmp.Compare(b.Total/max(1, b.Count), a.Total/max(1, a.Count))
		}
	case v.Has("sort-by-time"):
		o.order = func(a, b status.RequestStats) int { return cmp.Compare(b.Total, a.Total) }
	}
	if len(o.clusters) > 1 && o.p.Env(kube.EnvCluster) == "" { // others of them may not exist
		return slurmerr.New(slurmerr.Fatal, "Only one cluster can be used at a time with sdiag")
	}
	return run(ctx, o)
}

func byCount(a, b status.RequestStats) int { return cmp.Compare(b.Count, a.Count) }

func run(ctx context.Context, o *Options) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	if len(o.clusters) > 0 {
		if _, err := c.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	if o.reset {
		if err := c.ResetStatistics(ctx); err != nil {
			return err
		}
		return o.p.Print("Reset scheduling statistics\n")
	}
	d, err := c.Statistics(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(d.Types, o.order)
	slices.SortStableFunc(d.Users, o.order)
	return o.p.Print(string(format.AppendDiag(nil, d, o.p.Now().Location())))
}
