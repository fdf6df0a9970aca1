package queue

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// handleKey runs the action of a key.
func (p *Page) handleKey(k ui.Press) tea.Cmd {
	if p.list.Press(k.Action) {
		p.noteCursor()
		return nil
	}
	if cmd, ok := p.changeView(k.Action); ok {
		return cmd
	}
	return p.runAction(k.Action)
}

// changeView runs an action that changes only what is shown. It returns false for
// any other action.
func (p *Page) changeView(a ui.Action) (tea.Cmd, bool) {
	switch a {
	case ui.Left:
		p.firstColumn = max(0, p.firstColumn-1)
	case ui.Right:
		p.firstColumn = min(len(p.columns)-1, p.firstColumn+1)
	case ui.Filter:
		return p.env.Post(p.filterPrompt()), true
	case ui.Saved:
		return p.chooseFilter(), true
	case ui.Clear:
		return nil, p.SetFilter("") == nil
	case ui.Sort:
		return p.sortByNeighbor(1), true
	case ui.SortPrevious:
		return p.sortByNeighbor(-1), true
	case ui.Reverse:
		return p.reverse(), true
	case ui.Columns:
		return p.env.Post(p.chooseColumns()), true
	case ui.Expand:
		p.toggleGroup()
	case ui.All:
		return p.SetAll(!slices.Equal(p.options.Filter.States, jobs.AllStates)), true
	case ui.Pause:
		return p.togglePause(), true
	case ui.Open:
		return p.openJob(), true
	case ui.Mark:
		p.toggleMark()
	case ui.MarkRange:
		p.markRange()
	case ui.MarkAll:
		p.markAll()
	case ui.Copy:
		return p.copyID(), true
	case ui.CopyRow:
		return p.env.Post(ui.SetClipboard{Text: p.rowText(), What: "the row"}), true
	default:
		return nil, false
	}
	return nil, true
}

// filterPrompt returns the prompt for a filter. The list follows each key; a filter
// that cannot be parsed leaves it as it was.
func (p *Page) filterPrompt() ui.Prompt {
	before := p.rows.filter
	restore := func() {
		p.rows.filter = before
		p.rows.refilter()
		p.restoreCursor()
	}
	return ui.Prompt{
		Label: "/", Initial: before.Text(), History: "filter",
		OnChange: func(text string) { _ = p.SetFilter(text) },
		OnSubmit: func(text string) tea.Cmd {
			if err := p.SetFilter(text); err != nil {
				restore()
				return p.env.NotifyError(err)
			}
			return nil
		},
		OnCancel: restore,
	}
}

// chooseFilter offers the saved filters.
func (p *Page) chooseFilter() tea.Cmd {
	if len(p.saved) == 0 {
		return p.env.Notify("No filters are saved; :save NAME saves the present one.")
	}
	var items []ui.Choice
	for name, text := range p.saved {
		items = append(items, ui.Choice{Name: name, Text: text})
	}
	slices.SortFunc(items, func(a, b ui.Choice) int { return strings.Compare(a.Name, b.Name) })
	return p.env.Post(ui.Choose{Title: "Saved filters", Items: items, OnSubmit: func(c []ui.Choice) tea.Cmd {
		if err := p.SetFilter(c[0].Text); err != nil {
			return p.env.NotifyError(err)
		}
		return nil
	}})
}

// sortByNeighbor sorts by the column n places from the present sort column, which
// becomes the second sort key.
func (p *Page) sortByNeighbor(n int) tea.Cmd {
	at := -1
	if len(p.rows.keys) > 0 {
		at = slices.IndexFunc(p.columns, func(c *column) bool { return c.Name == p.rows.keys[0].Column.Name })
	}
	if at < 0 && n < 0 {
		at = 0
	}
	at = (at + n + len(p.columns)) % len(p.columns)
	return p.sortBy(p.columns[at])
}

// sortBy sorts by a column, and then by the present keys, at most three in all.
func (p *Page) sortBy(c *column) tea.Cmd {
	keys := []data.SortKey{{Column: c.Column}}
	for _, k := range p.rows.keys {
		if k.Column.Name != c.Name && len(keys) < 3 {
			keys = append(keys, k)
		}
	}
	return p.setSortKeys(keys)
}

// reverse reverses the order of the first sort key.
func (p *Page) reverse() tea.Cmd {
	if len(p.rows.keys) == 0 {
		return nil
	}
	keys := slices.Clone(p.rows.keys)
	keys[0].Descending = !keys[0].Descending
	return p.setSortKeys(keys)
}

// chooseColumns returns a list in which the user selects and orders the columns.
func (p *Page) chooseColumns() ui.Choose {
	var items []ui.Choice
	for _, c := range p.columns {
		items = append(items, ui.Choice{Name: c.Name, Text: c.Header, On: true})
	}
	for _, name := range Known() {
		if !slices.ContainsFunc(p.columns, func(c *column) bool { return c.Name == name }) {
			items = append(items, ui.Choice{Name: name, Text: findColumn(name).Header})
		}
	}
	return ui.Choose{Title: "Columns", Items: items, Toggle: true, OnSubmit: func(items []ui.Choice) tea.Cmd {
		var names []string
		for _, i := range items {
			if i.On {
				names = append(names, i.Name)
			}
		}
		cmd, err := p.SetColumns(names)
		if err != nil {
			return p.env.NotifyError(err)
		}
		return cmd
	}}
}

// toggleGroup expands or collapses the group of the current row.
func (p *Page) toggleGroup() {
	i := p.list.Cursor
	if i < 0 || i >= len(p.rows.list) {
		return
	}
	id, _ := p.rows.groupID(p.rows.list[i].slot)
	if id == 0 {
		return
	}
	if p.rows.expanded[id] = !p.rows.expanded[id]; !p.rows.expanded[id] {
		delete(p.rows.expanded, id)
		p.cursorKey = -id
	}
	p.rows.fold()
	p.restoreCursor()
}

// openJob requests the page of the current job.
func (p *Page) openJob() tea.Cmd {
	if id := p.Current(); id != "" {
		return p.env.Post(ui.OpenPage{Page: ui.PageJob, ID: id})
	}
	return nil
}

// click moves the cursor to a row, opens the current row, toggles a mark (in the
// first cell), sorts by a header, or scrolls.
func (p *Page) click(c ui.Click) tea.Cmd {
	head := p.height - p.list.Height
	switch {
	case c.Wheel != 0:
		p.list.Scroll(c.Wheel)
	case c.Y < head:
		for _, at := range p.placements {
			if c.X >= at.x+gutter && c.X <= at.x+gutter+at.width {
				return p.sortOrReverse(p.columns[at.index])
			}
		}
	case p.list.Top+c.Y-head >= len(p.rows.list):
	case c.X == 0:
		p.list.MoveTo(p.list.Top + c.Y - head)
		p.noteCursor()
		p.toggleMark()
		return nil
	default:
		i := p.list.Top + c.Y - head
		current := i == p.list.Cursor
		p.list.MoveTo(i)
		p.noteCursor()
		if current {
			return p.openJob()
		}
		return nil
	}
	p.noteCursor()
	return nil
}

// sortOrReverse sorts by a column, or reverses the order if the queue is sorted by
// it.
func (p *Page) sortOrReverse(c *column) tea.Cmd {
	if len(p.rows.keys) > 0 && p.rows.keys[0].Column.Name == c.Name {
		return p.reverse()
	}
	return p.sortBy(c)
}
