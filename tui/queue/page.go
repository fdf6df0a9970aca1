// Package queue is the page of the queue: the rows of a watch in the columns of
// squeue, with a filter, an order, collapsed arrays, marks, and operations on the
// marked jobs.
package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// State is what the program saves of the page.
type State struct {
	Columns []string `json:"columns,omitempty"`
	Order   string   `json:"order,omitempty"` // as squeue -S
}

// Options are the options of the command line.
type Options struct {
	Filter jobs.Filter
	State                   // empty fields: the default
	Widths map[string]Width // of columns by name; a missing one has the default
	Flat   bool             // array tasks are not grouped (squeue -r)
	// CommandLine has the options of squeue that select the same jobs.
	CommandLine string
}

// Page shows the queue.
type Page struct {
	env      *data.Env
	options  Options
	rows     rows
	incoming *data.Store // a new list that has not arrived as a whole
	watch    *data.Watch
	settings *format.Settings
	offset   int64 // the server's clock minus ours, in seconds

	list          ui.List
	cursorKey     int64 // key of the line under the cursor
	columns       []*column
	picked        data.FieldSet
	widths        []int
	placements    []placement
	firstColumn   int
	width, height int
	buf           []byte

	marks        map[int64]bool // by key
	anchor       int64          // key of the last mark
	bells        map[int64]bool // by key: jobs whose end rings the bell
	lostReason   string         // why no events arrive; empty: they do
	paused       bool
	pausedEvents bufferedEvents // events that arrived while paused
	saved        map[string]string
	undo         *undo
	busy         bool // an operation is under way
}

// New returns the page. It sends no request; Start does. saved are filters by name.
// If columns do not exist, the error names them and the page has the others.
func New(env *data.Env, o Options, saved map[string]string) (*Page, error) {
	settings := env.Format
	if settings.Layout == "" {
		settings.Layout = format.TimeLayout("relative") // short, with the day of near dates
	}
	p := &Page{
		env: env, options: o, settings: &settings, saved: saved,
		marks: map[int64]bool{}, bells: map[int64]bool{},
	}
	p.rows = rows{filter: &query.Query{}, expanded: map[int64]bool{}, flat: o.Flat, settings: &settings}
	names := o.Columns
	if len(names) == 0 {
		names = Default
	}
	var unknown []string
	p.columns, unknown = findColumns(names)
	applyWidths(p.columns, o.Widths)
	order := o.Order
	if order == "" {
		order = format.JobOrder
	}
	p.rows.keys = parseOrder(order)
	p.rows.store = data.NewStore(p.fields())
	p.resolveFields()
	if len(unknown) > 0 {
		return p, fmt.Errorf("no column is called %s", strings.Join(unknown, ", "))
	}
	return p, nil
}

// fields returns the fields of jobs that the page needs.
func (p *Page) fields() []string {
	out := append(query.Fields(), "plannedNodes", "gres", "submitHost")
	for _, c := range p.columns {
		out = append(out, c.Fields...)
	}
	for _, k := range p.rows.keys {
		out = append(out, k.Column.Fields...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resolveFields looks up the columns' fields in the store.
func (p *Page) resolveFields() {
	var f []string
	for _, c := range p.columns {
		f = append(f, c.Fields...)
	}
	p.picked, p.widths = p.rows.store.Select(f), nil
}

// Start starts a new watch of the queue.
func (p *Page) Start() tea.Cmd {
	if p.watch != nil {
		p.watch.Stop()
	}
	p.pausedEvents = bufferedEvents{}
	f := p.options.Filter
	f.Fields = p.fields()
	p.watch = data.WatchJobs(p.env.Context, p.env.Cluster, f)
	return p.watch.Next
}

// State returns the state to save.
func (p *Page) State() State {
	s := State{Order: formatOrder(p.rows.keys)}
	for _, c := range p.columns {
		s.Columns = append(s.Columns, c.Name)
	}
	return s
}

// retryWatch starts a new watch after the server refused one.
type retryWatch struct{ watch *data.Watch }

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case data.Events:
		return p.events(msg)
	case retryWatch:
		if msg.watch == p.watch {
			return p.Start()
		}
	case ui.Press:
		return p.handleKey(msg)
	case ui.Click:
		return p.click(msg)
	case operationDone:
		return p.reportOperation(msg)
	}
	return nil
}

// Tick sets the time. It reports whether anything visible depends on it.
func (p *Page) Tick(now time.Time) bool {
	p.settings.Now = now.Unix() + p.offset
	showsTimes := slices.ContainsFunc(
		p.columns,
		func(c *column) bool { return c.Value != nil && c.Name != gpuColumn.Name },
	)
	if p.paused || !showsTimes {
		return false
	}
	first, last := p.list.Visible()
	for i := first; i < min(last, len(p.rows.list)); i++ {
		if p.rows.store.Text(p.rows.list[i].slot, "state") == "RUNNING" {
			return true
		}
	}
	return false
}

// events handles a batch of events of the watch.
func (p *Page) events(e data.Events) tea.Cmd {
	if e.Watch != p.watch {
		return nil // of an earlier watch
	}
	if p.paused && e.Err == nil {
		return p.buffer(e)
	}
	var cmds []tea.Cmd
	if len(e.Events) > 0 {
		cmds = append(cmds, p.apply(e.Events))
	}
	switch {
	case e.Err != nil:
		p.lostReason = e.Err.Error()
		w := p.watch
		cmds = append(cmds, p.env.NotifyError(fmt.Errorf("%s; trying again", p.lostReason)),
			tea.Tick(data.RetryDelay, func(time.Time) tea.Msg { return retryWatch{w} }))
		return tea.Batch(cmds...)
	case e.Lost != nil:
		p.lostReason = e.Lost.Error()
		cmds = append(cmds, p.env.NotifyError(fmt.Errorf("%s; trying again", p.lostReason)))
	}
	return tea.Batch(append(cmds, p.watch.Next)...)
}

// apply applies events to the rows. A new list replaces the rows when it has
// arrived as a whole, so that cursor and marks never apply to half a queue.
func (p *Page) apply(events []*status.JobEvent) tea.Cmd {
	var cmds []tea.Cmd
	if p.lostReason != "" && p.rows.store.Complete {
		cmds = append(cmds, p.env.Notify("The queue answers again."))
	}
	p.lostReason = ""
	for _, e := range events {
		if e.Type == status.EventSync {
			p.incoming = data.NewStore(p.fields())
		}
		p.offset = e.Time - p.env.Now().Unix()
		p.settings.Now = e.Time
		if p.incoming == nil {
			finished := p.finishedBy(e)
			p.rows.apply(p.rows.store.Apply(e))
			cmds = append(cmds, p.removeFinished(finished))
			continue
		}
		if c := p.incoming.Apply(e); c.More {
			continue
		}
		old := p.rows.store
		p.rows.store, p.incoming = p.incoming, nil
		p.resolveFields()
		p.rows.rebuild()
		cmds = append(cmds, p.removeFinished(p.finishedSince(old)))
	}
	p.restoreCursor()
	return tea.Batch(cmds...)
}

// restoreCursor moves the cursor to the line it was on, wherever that is now.
func (p *Page) restoreCursor() {
	p.list.Resize(len(p.rows.list), p.list.Height)
	if i := p.rows.indexOf(p.cursorKey); i >= 0 {
		p.list.MoveTo(i)
	}
	p.cursorKey = p.rows.key(p.list.Cursor)
}

// noteCursor stores which line the cursor is on.
func (p *Page) noteCursor() { p.cursorKey = p.rows.key(p.list.Cursor) }

// Current returns the id of the job under the cursor, empty if there is none.
func (p *Page) Current() string {
	j, ok := p.rows.job(p.list.Cursor)
	if !ok {
		return ""
	}
	if g := p.rows.list[p.list.Cursor].group; g != nil && !g.het {
		// Of a collapsed array, the first running task tells most.
		for _, s := range g.slots {
			if p.rows.store.Text(s, "state") == "RUNNING" {
				j = p.rows.store.Job(s)
				break
			}
		}
	}
	return fmt.Sprint(j.ID)
}

// SetFilter applies a filter.
func (p *Page) SetFilter(text string) error {
	q, err := query.Parse(text)
	if err != nil {
		return err
	}
	p.rows.filter = q
	p.settings.Now = p.env.Now().Unix() + p.offset
	p.rows.refilter()
	p.restoreCursor()
	return nil
}

// SetOrder sorts by the keys of a squeue -S.
func (p *Page) SetOrder(text string) (tea.Cmd, error) {
	keys := parseOrder(text)
	if len(keys) == 0 {
		return nil, fmt.Errorf("invalid sort specification: %s", printable.Escape(text))
	}
	return p.setSortKeys(keys), nil
}

// SetColumns shows the named columns.
func (p *Page) SetColumns(names []string) (tea.Cmd, error) {
	cols, unknown := findColumns(names)
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no column is called %s", printable.Escape(strings.Join(unknown, ", ")))
	}
	p.columns, p.firstColumn = cols, 0
	return p.applyColumns(), nil
}

// SetFormat shows the columns of a squeue -o.
func (p *Page) SetFormat(text string) (tea.Cmd, error) {
	l, bad := format.ParseLetters(format.JobColumns(), text)
	if len(bad) > 0 || len(NamesOf(l)) == 0 {
		return nil, fmt.Errorf("invalid job format specification: %s", printable.Escape(text))
	}
	cmd, err := p.SetColumns(NamesOf(l))
	applyWidths(p.columns, WidthsOf(l))
	return cmd, err
}

// applyColumns shows changed columns and sort keys. If the rows lack their fields,
// it starts a new watch.
func (p *Page) applyColumns() tea.Cmd {
	p.resolveFields()
	if slices.ContainsFunc(p.fields(), func(f string) bool { return !p.rows.store.HasField(f) && isField(f) }) {
		return p.Start()
	}
	p.rows.rebuild()
	p.restoreCursor()
	return nil
}

func isField(name string) bool {
	return slices.ContainsFunc(status.Fields, func(f status.Field) bool { return f.Name == name })
}

func (p *Page) setSortKeys(keys []data.SortKey) tea.Cmd {
	p.rows.keys = keys
	p.widths = nil
	return p.applyColumns()
}

// SetAll shows jobs in all states, or only those in states that are not final.
func (p *Page) SetAll(all bool) tea.Cmd {
	p.options.Filter.States = nil
	if all {
		p.options.Filter.States = jobs.AllStates
	}
	return p.Start()
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	if p.env.ReadOnly {
		return []ui.Action{ui.Help, ui.Filter, ui.Sort, ui.Open, ui.Output, ui.Columns, ui.Command, ui.Quit}
	}
	return []ui.Action{
		ui.Help,
		ui.Filter,
		ui.Mark,
		ui.Cancel,
		ui.Hold,
		ui.Release,
		ui.Open,
		ui.Output,
		ui.Sort,
		ui.Columns,
		ui.Command,
		ui.Quit,
	}
}

// Command returns the squeue command line that shows the same.
func (p *Page) Command() string {
	parts := []string{"squeue"}
	if p.options.CommandLine != "" {
		parts = append(parts, p.options.CommandLine)
	}
	if slices.Equal(p.options.Filter.States, jobs.AllStates) && !strings.Contains(p.options.CommandLine, "-t") {
		parts = append(parts, "-t all")
	}
	if names := p.squeueColumns(); len(names) > 0 {
		parts = append(parts, "-O "+strings.Join(names, ","))
	}
	var order []string
	for _, k := range p.rows.keys {
		if k.Column.Letter != 0 {
			order = append(order, formatOrder([]data.SortKey{k}))
		}
	}
	if len(order) > 0 {
		parts = append(parts, "-S "+strings.Join(order, ","))
	}
	return strings.Join(parts, " ")
}

// squeueColumns returns the columns by names that squeue -O knows.
func (p *Page) squeueColumns() []string {
	var out []string
	for _, c := range p.columns {
		if c.Name == gpuColumn.Name {
			out = append(out, "tres-per-node")
		} else {
			out = append(out, c.Name)
		}
	}
	return out
}

// Counts returns the number of shown jobs by state.
func (p *Page) Counts() map[string]int {
	counts := map[string]int{}
	for _, s := range p.rows.filtered {
		counts[p.rows.store.Text(s, "state")] += p.rows.tasks(s)
	}
	return counts
}

// Filter returns the text of the present filter.
func (p *Page) Filter() string { return p.rows.filter.Text() }

// SaveFilter adds a filter to the saved ones.
func (p *Page) SaveFilter(name, text string) { p.saved[name] = text }

// CursorKey returns the key of the line under the cursor: the job's id, the negated
// id of a group, or 0 if there is no line.
func (p *Page) CursorKey() int64 { return p.rows.key(p.list.Cursor) }

// HasLine reports whether the job has a line of its own.
func (p *Page) HasLine(id int64) bool {
	i := p.rows.indexOf(id)
	return i >= 0 && p.rows.key(i) == id
}

// Watch returns the present watch.
func (p *Page) Watch() *data.Watch { return p.watch }

// UpToDate reports whether the page shows the queue as it is now: it is not paused,
// and its watch has delivered the whole list.
func (p *Page) UpToDate() bool {
	return !p.paused && p.lostReason == "" && p.incoming == nil && p.rows.store.Complete
}

// Job returns the row of a job, whether or not it passes the filter.
func (p *Page) Job(id int64) (status.Job, bool) {
	slot, ok := p.rows.store.Slot(id)
	if !ok {
		return status.Job{}, false
	}
	return p.rows.store.Job(slot), true
}
