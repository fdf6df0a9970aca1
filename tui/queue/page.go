// Package queue is the page of the queue: the rows of a watch in the columns of
// squeue, with a filter, an order, folded arrays, marks, and what can be done
// with the marked jobs.
package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// State is what the page remembers from one time to the next.
type State struct {
	Columns []string `json:"columns,omitempty"`
	Order   string   `json:"order,omitempty"` // as squeue -S
}

// Options are what the command line says.
type Options struct {
	Filter jobs.Filter
	State  // empty members: as usual
	// Widths are what the command line says of the columns, by name.
	Widths map[string]Width
	Flat   bool
	// Line is the command line of squeue that asks for the same.
	CommandLine string
}

// Page shows the queue.
type Page struct {
	env      *data.Env
	options  Options
	rows     rows
	incoming *data.Store // a new list that is not whole yet
	watch    *data.Watch
	settings *format.Settings
	offset   int64 // of the server's clock from ours, seconds

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
	bells        map[int64]bool // jobs to ring for
	lostReason   string         // why nothing comes
	paused       bool
	pausedEvents bufferedEvents // what came while paused
	saved        map[string]string
	undo         *undo
	busy         bool // an operation is under way
}

// New makes the page; it asks for nothing yet. saved are filters by name.
func New(env *data.Env, o Options, saved map[string]string) (*Page, error) {
	settings := env.Format
	if settings.Layout == "" {
		settings.Layout = format.TimeLayout("relative") // short, and the day of near instants
	}
	p := &Page{env: env, options: o, settings: &settings, marks: map[int64]bool{}, bells: map[int64]bool{}, saved: saved}
	p.rows = rows{store: data.NewStore(nil), filter: &query.Query{}, expanded: map[int64]bool{}, flat: o.Flat, settings: &settings}
	names := o.Columns
	if len(names) == 0 {
		names = Default
	}
	var bad []string
	p.columns, bad = findColumns(names)
	applyWidths(p.columns, o.Widths)
	order := o.Order
	if order == "" {
		order = format.JobOrder
	}
	p.rows.keys = parseOrder(order)
	p.rows.store = data.NewStore(p.fields())
	p.resolveFields()
	if len(bad) > 0 {
		return p, fmt.Errorf("no column is called %s", strings.Join(bad, ", "))
	}
	return p, nil
}

// fields are the members of a row that the page needs.
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

// prepare finds the columns' fields in the store.
func (p *Page) resolveFields() {
	var f []string
	for _, c := range p.columns {
		f = append(f, c.Fields...)
	}
	p.picked, p.widths = p.rows.store.Select(f), nil
}

// Start begins to follow the queue.
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

// Remember is what to keep for the next time.
func (p *Page) State() State {
	s := State{Order: formatOrder(p.rows.keys)}
	for _, c := range p.columns {
		s.Columns = append(s.Columns, c.Name)
	}
	return s
}

// again asks to watch anew after a refusal.
type retryWatch struct{ watch *data.Watch }

// Update takes a message in.
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

// Tick moves the clock on; it tells whether anything that is shown depends on it.
func (p *Page) Tick(now time.Time) bool {
	p.settings.Now = now.Unix() + p.offset
	if p.paused || !slices.ContainsFunc(p.columns, func(c *column) bool { return c.Value != nil && c.Name != gpuColumn.Name }) {
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

func (p *Page) events(e data.Events) tea.Cmd {
	if e.Watch != p.watch {
		return nil // of a watch that is over
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

// take takes events into the store, and a list that has come whole in its
// place, so that cursor and marks never see half a queue.
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
			before := p.finishedBy(e)
			c := p.rows.store.Apply(e)
			p.rows.apply(c)
			cmds = append(cmds, p.removeFinished(before))
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

// follow puts the cursor onto the line it was on, wherever that is now.
func (p *Page) restoreCursor() {
	p.list.Resize(len(p.rows.list), p.list.Height)
	if i := p.rows.indexOf(p.cursorKey); i >= 0 {
		p.list.MoveTo(i)
	}
	p.cursorKey = p.rows.key(p.list.Cursor)
}

// moved notes what is under the cursor now.
func (p *Page) noteCursor() { p.cursorKey = p.rows.key(p.list.Cursor) }

// Current is the id of the job under the cursor, as commands take it.
func (p *Page) Current() string {
	j, ok := p.rows.job(p.list.Cursor)
	if !ok {
		return ""
	}
	if g := p.rows.list[p.list.Cursor].group; g != nil && !g.het {
		// Of a folded array, the first that runs says most.
		for _, s := range g.slots {
			if p.rows.store.Text(s, "state") == "RUNNING" {
				j = p.rows.store.Job(s)
				break
			}
		}
	}
	return fmt.Sprint(j.ID)
}

// SetFilter puts a filter on.
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

// SetOrder orders by the keys of a squeue -S.
func (p *Page) SetOrder(text string) (tea.Cmd, error) {
	keys := parseOrder(text)
	if len(keys) == 0 {
		return nil, fmt.Errorf("invalid sort specification: %s", format.Escape(text))
	}
	return p.setSortKeys(keys), nil
}

// SetColumns shows the named columns.
func (p *Page) SetColumns(names []string) (tea.Cmd, error) {
	cols, bad := findColumns(names)
	if len(bad) > 0 {
		return nil, fmt.Errorf("no column is called %s", format.Escape(strings.Join(bad, ", ")))
	}
	p.columns, p.firstColumn = cols, 0
	return p.applyColumns(), nil
}

// SetFormat shows the columns of a squeue -o.
func (p *Page) SetFormat(text string) (tea.Cmd, error) {
	l, bad := format.ParseLetters(format.JobColumns, text)
	if len(bad) > 0 || len(NamesOf(l)) == 0 {
		return nil, fmt.Errorf("invalid job format specification: %s", format.Escape(text))
	}
	cmd, err := p.SetColumns(NamesOf(l))
	applyWidths(p.columns, WidthsOf(l))
	return cmd, err
}

// refresh shows other columns: if the rows lack their fields it watches anew.
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

// SetAll also shows jobs that are over, or no longer.
func (p *Page) SetAll(all bool) tea.Cmd {
	p.options.Filter.States = nil
	if all {
		p.options.Filter.States = jobs.AllStates
	}
	return p.Start()
}

// Hints are the most useful actions.
func (p *Page) Hints() []ui.Action {
	if p.env.ReadOnly {
		return []ui.Action{ui.Help, ui.Filter, ui.Sort, ui.Open, ui.Output, ui.Columns, ui.Command, ui.Quit}
	}
	return []ui.Action{ui.Help, ui.Filter, ui.Mark, ui.Cancel, ui.Hold, ui.Release, ui.Open, ui.Output, ui.Sort, ui.Columns, ui.Command, ui.Quit}
}

// Line is the squeue that shows the same.
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

// shared are the columns that squeue has as well.
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

// Counts are how many jobs of the list are in each state, for plain screens.
func (p *Page) Counts() map[string]int {
	counts := map[string]int{}
	for _, s := range p.rows.filtered {
		counts[p.rows.store.Text(s, "state")] += p.rows.tasks(s)
	}
	return counts
}

// Filter is the text of the filter in use.
func (p *Page) Filter() string { return p.rows.filter.Text() }

// SaveFilter adds a filter to those to choose from.
func (p *Page) SaveFilter(name, text string) { p.saved[name] = text }

// At is the id of the job under the cursor; negative for a folded array, 0 for
// nothing.
func (p *Page) CursorKey() int64 { return p.rows.key(p.list.Cursor) }

// Has tells whether the job has a line of its own.
func (p *Page) HasLine(id int64) bool {
	i := p.rows.indexOf(id)
	return i >= 0 && p.rows.key(i) == id
}

// Watching is the watch that the page follows.
func (p *Page) Watch() *data.Watch { return p.watch }

// Live reports whether the page shows the queue as it is now: it is not paused,
// and its watch has delivered the whole list.
func (p *Page) UpToDate() bool {
	return !p.paused && p.lostReason == "" && p.incoming == nil && p.rows.store.Complete
}

// Job returns what the page knows of a job, shown or not.
func (p *Page) Job(id int64) (status.Job, bool) {
	slot, ok := p.rows.store.Slot(id)
	if !ok {
		return status.Job{}, false
	}
	return p.rows.store.Job(slot), true
}
