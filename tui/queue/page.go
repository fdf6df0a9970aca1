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
	Line string
}

// Page shows the queue.
type Page struct {
	env      *data.Env
	options  Options
	rows     rows
	next     *data.Store // a new list that is not whole yet
	watch    *data.Watch
	settings *format.Settings
	offset   int64 // of the server's clock from ours, seconds

	list          ui.List
	at            int64 // key of the line under the cursor
	columns       []*column
	picked        data.Picked
	widths        []int
	places        []place
	across        int
	width, height int
	buf           []byte

	marks  map[int64]bool // by key
	anchor int64          // key of the last mark
	bells  map[int64]bool // jobs to ring for
	lost   string         // why nothing comes
	paused bool
	held   heldEvents // what came while paused
	saved  map[string]string
	undo   *undo
	busy   bool // an operation is under way
}

// New makes the page; it asks for nothing yet. saved are filters by name.
func New(env *data.Env, o Options, saved map[string]string) (*Page, error) {
	settings := env.Format
	if settings.Layout == "" {
		settings.Layout = format.TimeLayout("relative") // short, and the day of near instants
	}
	p := &Page{env: env, options: o, settings: &settings, marks: map[int64]bool{}, bells: map[int64]bool{}, saved: saved}
	p.rows = rows{store: data.NewStore(nil), filter: &query.Query{}, open: map[int64]bool{}, flat: o.Flat, settings: &settings}
	names := o.Columns
	if len(names) == 0 {
		names = Default
	}
	var bad []string
	p.columns, bad = columnsOf(names)
	widen(p.columns, o.Widths)
	order := o.Order
	if order == "" {
		order = format.JobOrder
	}
	p.rows.keys = keysOf(order)
	p.rows.store = data.NewStore(p.fields())
	p.prepare()
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
func (p *Page) prepare() {
	var f []string
	for _, c := range p.columns {
		f = append(f, c.Fields...)
	}
	p.picked, p.widths = p.rows.store.Pick(f), nil
}

// Start begins to follow the queue.
func (p *Page) Start() tea.Cmd {
	if p.watch != nil {
		p.watch.Stop()
	}
	p.held = heldEvents{}
	f := p.options.Filter
	f.Fields = p.fields()
	p.watch = data.Follow(p.env.Context, p.env.Cluster, f)
	return p.watch.Next
}

// Remember is what to keep for the next time.
func (p *Page) Remember() State {
	s := State{Order: orderOf(p.rows.keys)}
	for _, c := range p.columns {
		s.Columns = append(s.Columns, c.Name)
	}
	return s
}

// again asks to watch anew after a refusal.
type again struct{ watch *data.Watch }

// Update takes a message in.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case data.Events:
		return p.events(msg)
	case again:
		if msg.watch == p.watch {
			return p.Start()
		}
	case ui.Press:
		return p.press(msg)
	case ui.Click:
		return p.click(msg)
	case done:
		return p.finished(msg)
	}
	return nil
}

// Tick moves the clock on; it tells whether anything that is shown depends on it.
func (p *Page) Tick(now time.Time) bool {
	p.settings.Now = now.Unix() + p.offset
	if p.paused || !slices.ContainsFunc(p.columns, func(c *column) bool { return c.Value != nil && c.Name != gpuColumn.Name }) {
		return false
	}
	first, last := p.list.Seen()
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
		return p.hold(e)
	}
	var cmds []tea.Cmd
	if len(e.Events) > 0 {
		cmds = append(cmds, p.take(e.Events))
	}
	switch {
	case e.Err != nil:
		p.lost = e.Err.Error()
		w := p.watch
		cmds = append(cmds, p.env.Complain(fmt.Errorf("%s; trying again", p.lost)),
			tea.Tick(data.Refusal, func(time.Time) tea.Msg { return again{w} }))
		return tea.Batch(cmds...)
	case e.Lost != nil:
		p.lost = e.Lost.Error()
		cmds = append(cmds, p.env.Complain(fmt.Errorf("%s; trying again", p.lost)))
	}
	return tea.Batch(append(cmds, p.watch.Next)...)
}

// take takes events into the store, and a list that has come whole in its
// place, so that cursor and marks never see half a queue.
func (p *Page) take(events []*status.JobEvent) tea.Cmd {
	var cmds []tea.Cmd
	if p.lost != "" && p.rows.store.Complete {
		cmds = append(cmds, p.env.Say("The queue answers again."))
	}
	p.lost = ""
	for _, e := range events {
		if e.Type == status.EventSync {
			p.next = data.NewStore(p.fields())
		}
		p.offset = e.Time - p.env.Now().Unix()
		p.settings.Now = e.Time
		if p.next == nil {
			before := p.ended(e)
			c := p.rows.store.Apply(e)
			p.rows.apply(c)
			cmds = append(cmds, p.forget(before))
			continue
		}
		if c := p.next.Apply(e); c.More {
			continue
		}
		old := p.rows.store
		p.rows.store, p.next = p.next, nil
		p.prepare()
		p.rows.rebuild()
		cmds = append(cmds, p.forget(p.missing(old)))
	}
	p.follow()
	return tea.Batch(cmds...)
}

// follow puts the cursor onto the line it was on, wherever that is now.
func (p *Page) follow() {
	p.list.Resize(len(p.rows.list), p.list.Height)
	if i := p.rows.find(p.at); i >= 0 {
		p.list.To(i)
	}
	p.at = p.rows.key(p.list.Cursor)
}

// moved notes what is under the cursor now.
func (p *Page) moved() { p.at = p.rows.key(p.list.Cursor) }

// Current is the id of the job under the cursor, as commands take it.
func (p *Page) Current() string {
	j, ok := p.rows.first(p.list.Cursor)
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
	p.follow()
	return nil
}

// SetOrder orders by the keys of a squeue -S.
func (p *Page) SetOrder(text string) (tea.Cmd, error) {
	keys := keysOf(text)
	if len(keys) == 0 {
		return nil, fmt.Errorf("invalid sort specification: %s", format.Escape(text))
	}
	return p.sorted(keys), nil
}

// SetColumns shows the named columns.
func (p *Page) SetColumns(names []string) (tea.Cmd, error) {
	cols, bad := columnsOf(names)
	if len(bad) > 0 {
		return nil, fmt.Errorf("no column is called %s", format.Escape(strings.Join(bad, ", ")))
	}
	p.columns, p.across = cols, 0
	return p.refresh(), nil
}

// SetFormat shows the columns of a squeue -o.
func (p *Page) SetFormat(text string) (tea.Cmd, error) {
	l, bad := format.ParseLetters(format.JobColumns, text)
	if len(bad) > 0 || len(NamesOf(l)) == 0 {
		return nil, fmt.Errorf("invalid job format specification: %s", format.Escape(text))
	}
	cmd, err := p.SetColumns(NamesOf(l))
	widen(p.columns, WidthsOf(l))
	return cmd, err
}

// refresh shows other columns: if the rows lack their fields it watches anew.
func (p *Page) refresh() tea.Cmd {
	p.prepare()
	if slices.ContainsFunc(p.fields(), func(f string) bool { return !p.rows.store.Has(f) && isField(f) }) {
		return p.Start()
	}
	p.rows.rebuild()
	p.follow()
	return nil
}

func isField(name string) bool {
	return slices.ContainsFunc(status.Fields, func(f status.Field) bool { return f.Name == name })
}

func (p *Page) sorted(keys []data.Key) tea.Cmd {
	p.rows.keys = keys
	p.widths = nil
	return p.refresh()
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
func (p *Page) Line() string {
	parts := []string{"squeue"}
	if p.options.Line != "" {
		parts = append(parts, p.options.Line)
	}
	if slices.Equal(p.options.Filter.States, jobs.AllStates) && !strings.Contains(p.options.Line, "-t") {
		parts = append(parts, "-t all")
	}
	if names := p.shared(); len(names) > 0 {
		parts = append(parts, "-O "+strings.Join(names, ","))
	}
	var order []string
	for _, k := range p.rows.keys {
		if k.Column.Letter != 0 {
			order = append(order, orderOf([]data.Key{k}))
		}
	}
	if len(order) > 0 {
		parts = append(parts, "-S "+strings.Join(order, ","))
	}
	return strings.Join(parts, " ")
}

// shared are the columns that squeue has as well.
func (p *Page) shared() []string {
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
	for _, s := range p.rows.sorted {
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
func (p *Page) At() int64 { return p.rows.key(p.list.Cursor) }

// Has tells whether the job has a line of its own.
func (p *Page) Has(id int64) bool {
	i := p.rows.find(id)
	return i >= 0 && p.rows.key(i) == id
}

// Watching is the watch that the page follows.
func (p *Page) Watching() *data.Watch { return p.watch }

// Live reports whether the page shows the queue as it is now: it is not paused,
// and its watch has delivered the whole list.
func (p *Page) Live() bool {
	return !p.paused && p.lost == "" && p.next == nil && p.rows.store.Complete
}

// Job returns what the page knows of a job, shown or not.
func (p *Page) Job(id int64) (status.Job, bool) {
	slot, ok := p.rows.store.Slot(id)
	if !ok {
		return status.Job{}, false
	}
	return p.rows.store.Job(slot), true
}
