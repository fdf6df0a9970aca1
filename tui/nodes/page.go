// Package nodes is the page of the nodes: what sinfo -N tells, with what is
// used of each, and from there the jobs on a node.
package nodes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// Page shows nodes.
type Page struct {
	env    *data.Env
	only   []string // nodes that are meant; nil: all
	of     string   // the list as it was given
	nodes  []status.Node
	shown  []*status.Node
	filter *query.Query
	table  ui.Table
	at     string // the node under the cursor
	order  int
	turned bool
	err    error
	loaded bool
	hidden bool
	height int
}

// pause is the time between two looks at the nodes while they are shown: the
// cluster has no watch for them.
const pause = 5 * time.Second

// New makes the page, of all nodes or of those in a folded list.
func New(env *data.Env, list string) *Page {
	p := &Page{env: env, of: list, filter: &query.Query{}}
	if list != "" {
		if names, err := hostlist.Expand(list); err == nil {
			p.only = names
		} else {
			p.err = fmt.Errorf("invalid node name %s", format.Escape(list))
		}
	}
	p.table = ui.Table{Headers: []string{"NODE", "STATE", "CPUS", "", "MEMORY", "GPUS", "LOAD", "PARTITIONS", "REASON"},
		Right: []bool{false, false, true, false, true, true, true}, Ranks: []int{0, 0, 1, 6, 2, 3, 7, 5, 4}}
	return p
}

type got struct {
	page  *Page
	nodes []status.Node
	err   error
}

type again struct{ page *Page }

func (p *Page) ask() tea.Cmd {
	env := p.env
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		list, err := env.Cluster.Nodes(ctx)
		if err != nil {
			return got{p, nil, err}
		}
		return got{p, list.Items, nil}
	}
}

// Update takes a message in.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ui.Shown:
		p.hidden = false
		return p.ask()
	case ui.Hidden:
		p.hidden = true
	case again:
		if msg.page == p && !p.hidden {
			return p.ask()
		}
	case got:
		if msg.page != p {
			return nil
		}
		p.err = msg.err
		if msg.err == nil {
			p.nodes, p.loaded = msg.nodes, true
			p.fill()
		}
		return tea.Tick(pause, func(time.Time) tea.Msg { return again{p} })
	case ui.Click:
		if p.table.Click(msg, p.height) {
			return p.open()
		}
		p.moved()
	case ui.Press:
		return p.press(msg)
	}
	return nil
}

func (p *Page) moved() {
	p.at = ""
	if i := p.table.List.Cursor; i >= 0 && i < len(p.shown) {
		p.at = p.shown[i].Name
	}
}

func (p *Page) press(k ui.Press) tea.Cmd {
	if p.table.List.Press(k.Action) {
		p.moved()
		return nil
	}
	switch k.Action {
	case ui.Open:
		return p.open()
	case ui.Sort:
		p.order = (p.order + 1) % len(p.table.Headers)
	case ui.SortPrev:
		p.order = (p.order + len(p.table.Headers) - 1) % len(p.table.Headers)
	case ui.Reverse:
		p.turned = !p.turned
	case ui.Clear:
		p.filter = &query.Query{}
	case ui.Filter:
		return p.env.Send(data.AskFilter(p.env, "nodes", &p.filter, p.fill))
	case ui.Copy:
		if p.at != "" {
			return p.env.Send(ui.Clip{Text: p.at, What: p.at})
		}
	case ui.ShowLine:
		return p.env.Send(ui.Clip{Text: p.Line(), What: p.Line()})
	}
	p.fill()
	return nil
}

// open shows the jobs on the node.
func (p *Page) open() tea.Cmd {
	if p.at == "" {
		return nil
	}
	return p.env.Send(ui.Go{Page: ui.PageQueue, ID: p.at})
}

// fill makes the rows.
func (p *Page) fill() {
	p.shown = p.shown[:0]
	for i := range p.nodes {
		n := &p.nodes[i]
		if (p.only == nil || slices.Contains(p.only, n.Name)) && p.passes(n) {
			p.shown = append(p.shown, n)
		}
	}
	slices.SortFunc(p.shown, func(a, b *status.Node) int {
		c := p.compare(a, b)
		if p.turned {
			c = -c
		}
		if c == 0 {
			return strings.Compare(natural(a.Name), natural(b.Name))
		}
		return c
	})
	p.table.Rows, p.table.Styles = nil, nil
	cursor := -1
	for i, n := range p.shown {
		p.table.Rows = append(p.table.Rows, p.row(n))
		p.table.Styles = append(p.table.Styles, p.env.State(format.NodeState(n, false)))
		if n.Name == p.at {
			cursor = i
		}
	}
	p.table.List.Resize(len(p.table.Rows), p.table.List.Height)
	if cursor >= 0 {
		p.table.List.To(cursor)
	}
	p.moved()
}

func (p *Page) passes(n *status.Node) bool {
	return p.filter.Match(func(name string) (string, bool) {
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
			return fmt.Sprintf("gres/gpu=%d", gpus(n.GRES)), true
		}
		return "", false
	}, n.Name, format.NodeState(n, false), strings.Join(n.Partitions, ","), strings.Join(n.Features, ","), n.GRES, n.Reason)
}

func (p *Page) compare(a, b *status.Node) int {
	switch p.order {
	case 1:
		return strings.Compare(a.State, b.State)
	case 2, 3:
		return int((a.CPUs - a.CPUsAlloc) - (b.CPUs - b.CPUsAlloc))
	case 4:
		return int((a.Memory - a.MemAlloc) - (b.Memory - b.MemAlloc))
	case 5:
		return gpus(a.GRES) - gpus(a.GRESUsed) - gpus(b.GRES) + gpus(b.GRESUsed)
	case 6:
		return int(a.Load - b.Load)
	case 7:
		return strings.Compare(strings.Join(a.Partitions, ","), strings.Join(b.Partitions, ","))
	case 8:
		return strings.Compare(a.Reason, b.Reason)
	}
	return 0
}

// natural makes names with numbers sort by the numbers.
func natural(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] < '0' || s[i] > '9' {
			b.WriteByte(s[i])
			i++
			continue
		}
		j := i
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		b.WriteString(strings.Repeat("0", max(0, 12-(j-i))))
		b.WriteString(s[i:j])
		i = j
	}
	return b.String()
}

func (p *Page) row(n *status.Node) []string {
	load := ""
	if n.Load > 0 {
		load = fmt.Sprintf("%.2f", float64(n.Load)/100)
	}
	gpu := ""
	if g := gpus(n.GRES); g > 0 {
		gpu = fmt.Sprintf("%d/%d", gpus(n.GRESUsed), g)
	}
	return []string{n.Name, format.NodeState(n, false), fmt.Sprintf("%d/%d", n.CPUsAlloc, n.CPUs), p.env.Meter(int64(n.CPUsAlloc), int64(n.CPUs), 10),
		memory(n.MemAlloc) + "/" + memory(n.Memory), gpu, load, strings.Join(n.Partitions, ","), n.Reason}
}

// memory is MiB in a short form.
func memory(mib int64) string {
	if mib >= 10*1024 {
		return fmt.Sprintf("%dG", mib/1024)
	}
	return fmt.Sprintf("%dM", mib)
}

// gpus is the number of GPUs in a text of GRES.
func gpus(gres string) (n int) {
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

// View draws the page.
func (p *Page) View(width, height int) []string {
	p.height = height
	switch {
	case p.err != nil && !p.loaded:
		return []string{p.env.Bad.Render(ui.Cut(ui.Safe(p.err.Error()), width, p.env.Cut))}
	case !p.loaded:
		return []string{p.env.Dim.Render(ui.Cut("Asking for the nodes ...", width, ""))}
	case len(p.shown) == 0:
		return []string{p.env.Dim.Render(ui.Cut("No node passes.", width, ""))}
	}
	return p.table.View(p.env.Looks, width, height)
}

// Title is how many nodes there are in which state.
func (p *Page) Title() string {
	counts := map[string]int{}
	var names []string
	for _, n := range p.shown {
		s := format.NodeState(n, false)
		if counts[s]++; counts[s] == 1 {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("%d", len(p.shown))
	for _, s := range names {
		text += fmt.Sprintf("  %s %d", s, counts[s])
	}
	if !p.filter.Empty() {
		text += " /" + p.filter.Text()
	}
	if p.err != nil {
		text += " [not up to date: " + p.err.Error() + "]"
	}
	return ui.Safe(text)
}

// Hints are the most useful actions.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Help, ui.Back, ui.Open, ui.Filter, ui.Sort, ui.PageQueue, ui.PageTimeline}
}

// Line is the sinfo that tells the same.
func (p *Page) Line() string {
	if p.of != "" {
		return "sinfo -N -l -n " + p.of
	}
	return "sinfo -N -l"
}
