// Package listing holds what the pages of nodes and of accounting records share: a
// table with a filter and an order, whose cursor follows its record.
package listing

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// Kind describes the records of a list.
type Kind[T any] struct {
	History string // name of the history of filters
	Name    func(*T) string
	Row     func(*T) []string
	State   func(*T) string // for the second column's style
	Matches func(*query.Query, *T) bool
	// Compare compares by a column. Tie orders records that are equal by it, also
	// in descending order.
	Compare func(column int, a, b *T) int
	Tie     func(a, b *T) int
	// Open opens the record of that name.
	Open func(name string) tea.Cmd
	// Command returns the command line that shows the same.
	Command func() string
}

// List is a list of records as a table.
type List[T any] struct {
	Kind[T]
	Table      ui.Table
	Order      int // the column
	Descending bool
	Filter     *query.Query
	Shown      []*T
	// Current is the name of the record under the cursor; empty: there is none.
	Current string

	env    *data.Env
	items  []T
	height int
}

// New returns an empty list.
func New[T any](env *data.Env, k Kind[T], t ui.Table) *List[T] {
	return &List[T]{Kind: k, Table: t, Filter: &query.Query{}, env: env}
}

// Set replaces the records. The list owns items from then on.
func (l *List[T]) Set(items []T) {
	l.items = items
	l.Refresh()
}

// Refresh filters and sorts the records and makes the rows.
func (l *List[T]) Refresh() {
	l.Shown = l.Shown[:0]
	for i := range l.items {
		if r := &l.items[i]; l.Matches(l.Filter, r) {
			l.Shown = append(l.Shown, r)
		}
	}
	slices.SortStableFunc(l.Shown, func(a, b *T) int {
		c := l.Compare(l.Order, a, b)
		if l.Descending {
			c = -c
		}
		if c == 0 {
			return l.Tie(a, b)
		}
		return c
	})
	l.Table.Rows, l.Table.Styles = nil, nil
	cursor := -1
	for i, r := range l.Shown {
		l.Table.Rows = append(l.Table.Rows, l.Row(r))
		l.Table.Styles = append(l.Table.Styles, l.env.State(l.State(r)))
		if l.Name(r) == l.Current {
			cursor = i
		}
	}
	l.Table.List.Resize(len(l.Table.Rows), l.Table.List.Height)
	if cursor >= 0 {
		l.Table.List.MoveTo(cursor)
	}
	l.noteCursor()
}

// noteCursor sets Current to the record under the cursor.
func (l *List[T]) noteCursor() {
	l.Current = ""
	if i := l.Table.List.Cursor; i >= 0 && i < len(l.Shown) {
		l.Current = l.Name(l.Shown[i])
	}
}

// Click handles a click or the wheel. A click on the current record opens it.
func (l *List[T]) Click(c ui.Click) tea.Cmd {
	if l.Table.Click(c, l.height) {
		return l.open()
	}
	l.noteCursor()
	return nil
}

func (l *List[T]) open() tea.Cmd {
	if l.Current == "" {
		return nil
	}
	return l.Open(l.Current)
}

// Press runs an action that all lists have in common.
func (l *List[T]) Press(a ui.Action) tea.Cmd {
	if l.Table.List.Press(a) {
		l.noteCursor()
		return nil
	}
	columns := len(l.Table.Headers)
	switch a {
	case ui.Open:
		return l.open()
	case ui.Sort:
		l.Order = (l.Order + 1) % columns
	case ui.SortPrevious:
		l.Order = (l.Order + columns - 1) % columns
	case ui.Reverse:
		l.Descending = !l.Descending
	case ui.Clear:
		l.Filter = &query.Query{}
	case ui.Filter:
		return l.env.Post(data.FilterPrompt(l.env, l.History, &l.Filter, l.Refresh))
	case ui.Copy:
		if l.Current != "" {
			return l.env.Post(ui.SetClipboard{Text: l.Current, What: l.Current})
		}
	case ui.ShowCommand:
		return l.env.Post(ui.SetClipboard{Text: l.Command(), What: l.Command()})
	}
	l.Refresh()
	return nil
}

// View draws the table, or text instead if it is not empty.
func (l *List[T]) View(width, height int, text string, bad bool) []string {
	l.height = height
	if text == "" {
		return l.Table.View(l.env.Appearance, width, height)
	}
	style := l.env.Dim
	if bad {
		style = l.env.Bad
	}
	return []string{style.Render(ui.Truncate(printable.Escape(text), width, l.env.Ellipsis))}
}

// FilterText returns the filter as titles show it.
func (l *List[T]) FilterText() string {
	if l.Filter.Empty() {
		return ""
	}
	return " /" + l.Filter.Text()
}
