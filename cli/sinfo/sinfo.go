// Package sinfo shows partitions and nodes.
package sinfo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Lister is the interface of the cluster that sinfo needs.
type Lister interface {
	Nodes(ctx context.Context) (*status.NodeList, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Reservations(ctx context.Context) (*status.ReservationList, error)
	Cluster(ctx context.Context, names []string) (string, error)
	User() string
}

// Options are the dependencies and options of sinfo.
type Options struct {
	p       *stdio.Process
	connect func() (Lister, error)

	layout   format.Layout[format.NodeGroup]
	order    string
	settings format.Settings

	partitions []string
	nodes      []string
	states     [][]string              // each: all of them at the same time; nil: any
	keep       func(*status.Node) bool // nil: all

	noHeader bool
	verbose  bool
	long     bool
	single   bool // one line for each node and partition
	exact    bool
	hidden   bool
	reasons  bool
	dump     *dump.Form // --json, --yaml; nil: a table
	every    time.Duration
	clusters []string // -M
	named    bool     // the cluster's name is shown
	booked   bool     // -T
	// skipEmpty: partitions without nodes have no line.
	skipEmpty bool
}

// New returns the command. It calls connect once, after it has parsed the command line.
func New(p *stdio.Process, connect func() (Lister, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command. As in Slurm, operands are ignored.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, _, err := option.Sinfo.Checked(o.checks(ctx)).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	if err := o.complete(v); err != nil {
		return err
	}
	if o.verbose {
		if err := o.p.Print(o.settingsText(v)); err != nil {
			return err
		}
	}
	return run(ctx, o)
}

// run prints the list once or repeatedly.
func run(ctx context.Context, o *Options) error {
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if len(o.clusters) > 0 || o.named {
		if o.settings.Cluster, err = cluster.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	once := list
	if o.booked {
		once = reservations
	}
	return o.p.Repeat(ctx, o.every, func() error { return once(ctx, o, cluster) })
}

func list(ctx context.Context, o *Options, cluster Lister) error {
	parts, err := cluster.Partitions(ctx)
	if err != nil {
		return err
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	parts.Items = slices.DeleteFunc(parts.Items, func(p status.Partition) bool {
		return len(o.partitions) > 0 && !slices.Contains(o.partitions, p.Name) ||
			p.Hidden && !o.hidden && len(o.partitions) == 0
	})
	nodes.Items = slices.DeleteFunc(nodes.Items, func(n status.Node) bool { return !o.wanted(&n) })
	if o.dump != nil {
		return o.write(parts.Items, nodes.Items, cluster.User())
	}
	return o.show(parts.Items, nodes.Items)
}

// wanted reports whether the node matches the filters.
func (o *Options) wanted(n *status.Node) bool {
	if len(o.nodes) > 0 && !slices.Contains(o.nodes, n.Name) {
		return false
	}
	if o.keep != nil && !o.keep(n) {
		return false
	}
	return o.states == nil || slices.ContainsFunc(o.states, func(s []string) bool { return format.NodeIs(n, s) })
}

func (o *Options) show(parts []status.Partition, nodes []status.Node) error {
	now := o.p.Now()
	s := o.settings
	s.Now = now.Unix()
	rows := format.GroupNodes(o.layout, parts, nodes, o.exact || o.single, o.single)
	if o.skipEmpty {
		rows = slices.DeleteFunc(rows, func(g format.NodeGroup) bool { return len(g.Nodes) == 0 })
	}
	format.SortNodeGroups(rows, o.order, o.single)
	layout := slices.Clone(o.layout)
	format.Widen(layout, rows)
	var out []byte
	if (o.long || o.verbose || o.every > 0) && !o.noHeader {
		out = now.In(s.Location).AppendFormat(out, "Mon Jan _2 15:04:05 2006\n")
	}
	if len(o.clusters) > 0 && !o.noHeader {
		out = append(out, "CLUSTER: "+s.Cluster+"\n"...)
	}
	if !o.noHeader {
		out = layout.AppendHeader(out)
	}
	for i := range rows {
		out = layout.AppendRow(out, &rows[i], &s)
	}
	if _, err := o.p.Out.Write(out); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// write prints the document of --json or --yaml.
func (o *Options) write(parts []status.Partition, nodes []status.Node, user string) error {
	f := *o.dump
	f.Slurm, f.Cluster, f.User, f.Now = build.Slurm, o.settings.Cluster, user, o.p.Now().Unix()
	out := dump.Sinfo(f, parts, nodes)
	_, err := o.p.Out.Write(out)
	return err
}

// reservations prints the output of sinfo -T.
func reservations(ctx context.Context, o *Options, cluster Lister) error {
	list, err := cluster.Reservations(ctx)
	if err != nil {
		return err
	}
	s := o.settings
	s.Now = o.p.Now().Unix()
	var out []byte
	if (o.every > 0 || o.long || o.verbose) && !o.noHeader {
		out = o.p.Now().In(s.Location).AppendFormat(out, "Mon Jan _2 15:04:05 2006\n")
	}
	if len(o.clusters) > 0 && !o.noHeader {
		out = append(out, "CLUSTER: "+s.Cluster+"\n"...)
	}
	_, err = o.p.Out.Write(format.AppendReservations(out, list.Items, o.noHeader, &s))
	return err
}
