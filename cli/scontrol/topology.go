package scontrol

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// showTopology prints the switches: all of them, the one with a name, or those above all
// nodes of a host list.
func showTopology(ctx context.Context, o *Options, c Cluster, ids []string) error {
	t, err := c.Topology(ctx)
	if err != nil {
		return err
	}
	name := first(ids)
	if len(t.Items) == 0 && name == "" {
		o.complain("No topology information available")
		return nil
	}
	items := t.Items
	if name != "" {
		items = switchesFor(t.Items, name)
	}
	if len(items) == 0 {
		o.complain("Topology information contains no switch or node named " + printable.Escape(name))
		return nil
	}
	var out []byte
	for i := range items {
		out = format.SwitchRecord(&items[i], t.Type == "block").Append(out, o.oneLine)
	}
	return o.p.Print(string(out))
}

// complain prints an error that does not change the exit code.
func (o *Options) complain(message string) {
	slurmerr.Print(o.p.Err, "scontrol", slurmerr.New(slurmerr.Refused, message))
}

// switchesFor returns the switch with the name or, if there is none, the switches above all
// nodes of the host list.
func switchesFor(all []status.Switch, name string) []status.Switch {
	if i := slices.IndexFunc(all, func(s status.Switch) bool { return s.Name == name }); i >= 0 {
		return all[i : i+1]
	}
	wanted, err := hostlist.ExpandLenient(name)
	if err != nil || len(wanted) == 0 {
		return nil
	}
	var out []status.Switch
	for i := range all {
		nodes, err := hostlist.Expand(all[i].Nodes)
		missing := func(node string) bool { return !slices.Contains(nodes, node) }
		if err == nil && !slices.ContainsFunc(wanted, missing) {
			out = append(out, all[i])
		}
	}
	return out
}
