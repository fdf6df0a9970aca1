// Package nodes is the page of the nodes: the rows of sinfo -N and how much of each
// node is in use. It opens the jobs on a node.
package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/listing"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// Page shows nodes.
type Page struct {
	env       *data.Env
	names     []string // the nodes to show; nil: all
	argument  string   // the host list that was given
	list      *listing.List[status.Node]
	feed      data.Feed[*status.NodeEvent]
	nodes     map[string]status.Node
	nameError error // why the host list cannot be parsed
	loaded    bool
}

// New returns the page of the nodes in a host list, or of all nodes if it is empty.
func New(env *data.Env, list string) *Page {
	p := &Page{env: env, argument: list, feed: data.NodeFeed(env)}
	if list != "" {
		if names, err := hostlist.Expand(list); err == nil {
			p.names = names
		} else {
			p.nameError = fmt.Errorf("invalid node name %s", printable.Escape(list))
		}
	}
	kind := listing.Kind[status.Node]{
		History: "nodes",
		Name:    func(n *status.Node) string { return n.Name },
		Row:     p.row,
		State:   func(n *status.Node) string { return format.NodeState(n, false) },
		Matches: p.matches,
		Compare: compare,
		Tie:     func(a, b *status.Node) int { return hostlist.Compare(a.Name, b.Name) },
		Open: func(name string) tea.Cmd {
			return p.env.Post(ui.OpenPage{Page: ui.PageQueue, ID: name})
		},
		Command: p.Command,
	}
	p.list = listing.New(env, kind, ui.Table{
		Headers: []string{"NODE", "STATE", "CPUS", "", "MEMORY", "GPUS", "LOAD", "PARTITIONS", "REASON"},
		Right:   []bool{false, false, true, false, true, true, true},
		Ranks:   []int{0, 0, 1, 6, 2, 3, 7, 5, 4},
	})
	return p
}

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	if events, next, mine := p.feed.Handle(msg); mine {
		p.apply(events)
		return next
	}
	switch msg := msg.(type) {
	case ui.Shown:
		return p.feed.Start()
	case ui.Hidden:
		p.feed.Stop()
	case ui.Click:
		return p.list.Click(msg)
	case ui.Press:
		return p.list.Press(msg.Action)
	}
	return nil
}

// apply applies events to the nodes.
func (p *Page) apply(events []*status.NodeEvent) {
	changed := false
	for _, e := range events {
		if e.Type == status.EventSync {
			p.nodes, p.loaded = make(map[string]status.Node, len(e.Items)), true
		}
		if !p.loaded {
			continue
		}
		for i := range e.Items {
			p.nodes[e.Items[i].Name] = e.Items[i]
		}
		for _, name := range e.Gone {
			delete(p.nodes, name)
		}
		changed = changed || e.Type != status.EventMark
	}
	if changed {
		p.list.Set(slices.Collect(maps.Values(p.nodes)))
	}
}

// matches reports whether a node is in the host list and passes a filter.
func (p *Page) matches(q *query.Query, n *status.Node) bool {
	if p.names != nil && !slices.Contains(p.names, n.Name) {
		return false
	}
	field := func(name string) (string, bool) {
		switch name {
		case "node", "nodelist", "name":
			return n.Name, true
		case "st", "state":
			return n.State, true
		case "cpu", "cpus":
			return fmt.Sprint(n.CPUs), true
		case "mem", "memory":
			return fmt.Sprint(n.Memory), true
		case "part", "partition":
			return strings.Join(n.Partitions, ","), true
		case "reason":
			return n.Reason, true
		case "gpu", "gpus":
			return fmt.Sprintf("gres/gpu=%d", gpuCount(n.GRES)), true
		}
		return "", false
	}
	return q.Match(field, n.Name, format.NodeState(n, false), strings.Join(n.Partitions, ","),
		strings.Join(n.Features, ","), n.GRES, n.Reason)
}

// compare compares nodes by a column.
func compare(column int, a, b *status.Node) int {
	switch column {
	case 1:
		return strings.Compare(a.State, b.State)
	case 2, 3:
		return int((a.CPUs - a.CPUsAlloc) - (b.CPUs - b.CPUsAlloc))
	case 4:
		return int((a.Memory - a.MemAlloc) - (b.Memory - b.MemAlloc))
	case 5:
		return gpuCount(a.GRES) - gpuCount(a.GRESUsed) - gpuCount(b.GRES) + gpuCount(b.GRESUsed)
	case 6:
		return int(a.Load - b.Load)
	case 7:
		return strings.Compare(strings.Join(a.Partitions, ","), strings.Join(b.Partitions, ","))
	case 8:
		return strings.Compare(a.Reason, b.Reason)
	}
	return 0
}

// row returns the texts of a node's row.
func (p *Page) row(n *status.Node) []string {
	load := ""
	if n.Load > 0 {
		load = fmt.Sprintf("%.2f", float64(n.Load)/100)
	}
	gpu := ""
	if g := gpuCount(n.GRES); g > 0 {
		gpu = fmt.Sprintf("%d/%d", gpuCount(n.GRESUsed), g)
	}
	return []string{
		n.Name, format.NodeState(n, false), fmt.Sprintf("%d/%d", n.CPUsAlloc, n.CPUs),
		p.env.Meter(int64(n.CPUsAlloc), int64(n.CPUs), 10), formatMemory(n.MemAlloc) + "/" + formatMemory(n.Memory),
		gpu, load, strings.Join(n.Partitions, ","), n.Reason,
	}
}

// formatMemory returns a number of MiB in a short form.
func formatMemory(mib int64) string {
	if mib >= 10*1024 {
		return fmt.Sprintf("%dG", mib/1024)
	}
	return fmt.Sprintf("%dM", mib)
}

// gpuCount returns the number of GPUs in a text of GRES.
func gpuCount(gres string) (n int) {
	for item := range strings.SplitSeq(gres, ",") {
		item, _, _ = strings.Cut(item, "(")
		parts := strings.Split(strings.TrimPrefix(item, "gres:"), ":")
		if parts[0] != "gpu" {
			continue
		}
		count := 1
		if len(parts) > 1 {
			if _, err := fmt.Sscan(parts[len(parts)-1], &count); err != nil {
				count = 1
			}
		}
		n += count
	}
	return n
}

// View implements ui.Page.
func (p *Page) View(width, height int) []string {
	text, bad := "", false
	switch {
	case p.nameError != nil:
		text, bad = p.nameError.Error(), true
	case p.feed.Err != nil && !p.loaded:
		text, bad = p.feed.Err.Error(), true
	case !p.loaded:
		text = "Loading the nodes ..."
	case len(p.list.Shown) == 0:
		text = "No node passes the filter."
	}
	return p.list.View(width, height, text, bad)
}

// Title returns the number of nodes in each state.
func (p *Page) Title() string {
	counts := map[string]int{}
	var names []string
	for _, n := range p.list.Shown {
		s := format.NodeState(n, false)
		if counts[s]++; counts[s] == 1 {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("%d", len(p.list.Shown))
	for _, s := range names {
		text += fmt.Sprintf("  %s %d", s, counts[s])
	}
	text += p.list.FilterText()
	if p.feed.Err != nil && p.loaded {
		text += " [not up to date: " + p.feed.Err.Error() + "]"
	}
	return printable.Escape(text)
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Help, ui.Back, ui.Open, ui.Filter, ui.Sort, ui.PageQueue, ui.PageTimeline}
}

// Command implements ui.Page.
func (p *Page) Command() string {
	if p.argument != "" {
		return "sinfo -N -l -n " + p.argument
	}
	return "sinfo -N -l"
}
