// Package listing is what pages of records share that are not jobs of the
// queue: a table with a filter and an order, whose cursor follows the record it
// is on.
package listing

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// Kind says what the records of a list are.
type Kind[T any] struct {
	History string // what filters are remembered as
	Name    func(*T) string
	Row     func(*T) []string
	State   func(*T) string // for the second column's style
	Matches func(*query.Query, *T) bool
	// Compare orders by a column. Tie orders what is equal, in either direction.
	Compare func(column int, a, b *T) int
	Tie     func(a, b *T) int
	// Open opens the record of that name.
	Open func(name string) tea.Cmd
	// Line is the command that tells the same.
	Command func() string
}

// List is the records and how they are shown.
type List[T any] struct {
	Kind[T]
	Table      ui.Table
	Order      int // the column
	Descending bool
	Filter     *query.Query
	Shown      []*T
	// At is the name of the record under the cursor; empty: there is none.
	Current string

	env    *data.Env
	items  []T
	height int
}

// New makes an empty list.
func New[T any](env *data.Env, k Kind[T], t ui.Table) *List[T] {
	return &List[T]{Kind: k, Table: t, Filter: &query.Query{}, env: env}
}

// Set shows these records, which the list owns from then on.
func (l *List[T]) Set(items []T) {
	l.items = items
	l.Refresh()
}

// Fill makes the rows anew.
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

func (l *List[T]) noteCursor() {
	l.Current = ""
	if i := l.Table.List.Cursor; i >= 0 && i < len(l.Shown) {
		l.Current = l.Name(l.Shown[i])
	}
}

// Click takes the mouse in: a second click opens.
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

// Press does what a key says that every list knows.
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

// View draws the table, or text where there is nothing in it.
func (l *List[T]) View(width, height int, text string, bad bool) []string {
	l.height = height
	if text == "" {
		return l.Table.View(l.env.Appearance, width, height)
	}
	style := l.env.Dim
	if bad {
		style = l.env.Bad
	}
	return []string{style.Render(ui.Truncate(ui.Safe(text), width, l.env.Ellipsis))}
}

// Filtered is the filter as titles show it.
func (l *List[T]) FilterText() string {
	if l.Filter.Empty() {
		return ""
	}
	return " /" + l.Filter.Text()
}
