// Package timeline is the page of jobs over time: when running jobs end and when
// pending jobs are planned to start, by job or by node.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// spans are the periods that the screen can show, in seconds.
var spans = []int64{900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400}

// Page shows jobs over time.
type Page struct {
	env        *data.Env
	filter     jobs.Filter
	store      *data.Store
	incoming   *data.Store
	feed       data.Feed[*status.JobEvent]
	query      *query.Query
	bars       []bar // by start
	byNode     bool
	lanes      []lane
	list       ui.List
	cursorName string // the job or node under the cursor
	span       int
	shift      int64 // by how many seconds the window is moved
	offset     int64
}

// bar is the period of a job.
type bar struct {
	job        status.Job
	start, end int64 // end 0: unknown
	planned    bool
	nodes      []string
}

// lane is a node with the jobs on it.
type lane struct {
	node string
	bars []*bar
}

// fields are the fields of jobs that the page uses.
var fields = []string{
	"id", "name", "user", "state", "partition", "start", "end", "timeLimit", "nodeList", "plannedNodes", "arrayJobID",
	"arrayTaskID", "hetJobID", "hetOffset", "priority",
}

// maxBars bounds the number of jobs on the page; those that start latest are left
// out.
const maxBars = 5000

// New returns the page of the jobs that pass f.
func New(env *data.Env, f jobs.Filter) *Page {
	f.States = []string{"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING"}
	f.Fields = append(slices.Clone(fields), query.Fields()...)
	slices.Sort(f.Fields)
	f.Fields = slices.Compact(f.Fields)
	return &Page{
		env: env, filter: f, store: data.NewStore(f.Fields), feed: data.JobFeed(env, f), query: &query.Query{}, span: 2,
	}
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
		if msg.Wheel != 0 {
			p.list.Scroll(msg.Wheel)
		} else if i := p.list.Top + msg.Y - 1; msg.Y >= 1 && i < p.list.Len {
			p.list.MoveTo(i)
		}
		p.noteCursor()
	case ui.Press:
		return p.handleKey(msg)
	}
	return nil
}

// apply applies events to the rows. A new list replaces them when it has arrived as
// a whole.
func (p *Page) apply(events []*status.JobEvent) {
	for _, ev := range events {
		if ev.Type == status.EventSync {
			p.incoming = data.NewStore(p.filter.Fields)
		}
		p.offset = ev.Time - p.env.Now().Unix()
		if p.incoming == nil {
			p.store.Apply(ev)
		} else if c := p.incoming.Apply(ev); !c.More {
			p.store, p.incoming = p.incoming, nil
		}
	}
	if p.incoming == nil {
		p.rebuild()
	}
}

// now returns the server's time.
func (p *Page) now() int64 { return p.env.Now().Unix() + p.offset }

// rebuild makes the bars of running jobs and of pending jobs with a planned start.
func (p *Page) rebuild() {
	p.bars = p.bars[:0]
	pass := p.query.Bind(p.store, p.now())
	slots := slices.DeleteFunc(p.store.Slots(nil), func(s int32) bool {
		return p.store.Number(s, "start") == 0 || !pass(s)
	})
	slices.SortFunc(slots, func(a, b int32) int {
		return cmp.Or(
			cmp.Compare(p.store.Number(a, "start"), p.store.Number(b, "start")),
			cmp.Compare(p.store.ID(a), p.store.ID(b)))
	})
	for _, s := range slots[:min(len(slots), maxBars)] {
		p.bars = append(p.bars, newBar(p.store.Job(s)))
	}
	p.lanes = nil
	if p.byNode {
		p.rebuildLanes()
	}
	p.restoreCursor()
}

// newBar returns the bar of a job.
func newBar(j status.Job) bar {
	b := bar{job: j, start: j.Start, end: j.End, planned: j.State == "PENDING"}
	if b.end == 0 && j.TimeLimit >= 0 {
		b.end = j.Start + int64(j.TimeLimit)*60
	}
	if j.TimeLimit < 0 {
		b.end = 0
	}
	list := j.NodeList
	if b.planned {
		list = j.PlannedNodes
	}
	if list != "" {
		b.nodes, _ = hostlist.Expand(list)
	}
	return b
}

// rebuildLanes makes the lanes from the bars.
func (p *Page) rebuildLanes() {
	at := map[string]int{}
	for i := range p.bars {
		for _, n := range p.bars[i].nodes {
			k, ok := at[n]
			if !ok {
				k = len(p.lanes)
				at[n] = k
				p.lanes = append(p.lanes, lane{node: n})
			}
			p.lanes[k].bars = append(p.lanes[k].bars, &p.bars[i])
		}
	}
	slices.SortFunc(p.lanes, func(a, b lane) int {
		if len(a.node) != len(b.node) {
			return len(a.node) - len(b.node)
		}
		return strings.Compare(a.node, b.node)
	})
}

// rows returns the number of rows.
func (p *Page) rows() int {
	if p.byNode {
		return len(p.lanes)
	}
	return len(p.bars)
}

// name returns the node or the job id of a row, by which the cursor follows it.
func (p *Page) name(i int) string {
	switch {
	case i < 0 || i >= p.rows():
		return ""
	case p.byNode:
		return p.lanes[i].node
	}
	return fmt.Sprint(p.bars[i].job.ID)
}

// restoreCursor moves the cursor to the row it was on.
func (p *Page) restoreCursor() {
	p.list.Resize(p.rows(), p.list.Height)
	for i := range p.rows() {
		if p.name(i) == p.cursorName {
			p.list.MoveTo(i)
			break
		}
	}
	p.noteCursor()
}

// noteCursor stores which row the cursor is on.
func (p *Page) noteCursor() { p.cursorName = p.name(p.list.Cursor) }

// handleKey runs the action of a key.
func (p *Page) handleKey(k ui.Press) tea.Cmd {
	if p.list.Press(k.Action) {
		p.noteCursor()
		return nil
	}
	switch k.Action {
	case ui.ZoomIn:
		p.span = max(0, p.span-1)
	case ui.ZoomOut:
		p.span = min(len(spans)-1, p.span+1)
	case ui.Left:
		p.shift -= spans[p.span] / 4
	case ui.Right:
		p.shift += spans[p.span] / 4
	case ui.Group:
		p.byNode, p.cursorName = !p.byNode, ""
		p.list.MoveTo(0)
		p.rebuild()
	case ui.Filter:
		return p.env.Post(data.FilterPrompt(p.env, "filter", &p.query, p.rebuild))
	case ui.Clear:
		p.query = &query.Query{}
		p.rebuild()
	case ui.Open:
		if p.cursorName != "" && p.byNode {
			return p.env.Post(ui.OpenPage{Page: ui.PageNodes, ID: p.cursorName})
		} else if p.cursorName != "" {
			return p.env.Post(ui.OpenPage{Page: ui.PageJob, ID: p.cursorName})
		}
	case ui.Copy:
		return p.env.Post(ui.SetClipboard{Text: p.cursorName, What: p.cursorName})
	case ui.ShowCommand:
		return p.env.Post(ui.SetClipboard{Text: p.Command(), What: p.Command()})
	}
	return nil
}

// Tick reports false: bars move by at most a cell in a minute, which does not need a
// frame each second.
func (p *Page) Tick(time.Time) bool { return false }

// View implements ui.Page.
func (p *Page) View(width, height int) []string {
	if height <= 0 {
		return nil
	}
	p.list.Resize(p.rows(), height-1)
	if p.rows() == 0 {
		text := "No job is running, and no start is planned."
		switch {
		case p.feed.Err != nil:
			text = p.feed.Err.Error()
		case !p.store.Complete:
			text = "Loading the queue ..."
		case !p.query.Empty():
			text = "No job passes the filter."
		}
		return []string{p.env.Dim.Render(ui.Truncate(printable.Escape(text), width, p.env.Ellipsis))}
	}
	label := p.labelWidth(width)
	out := []string{p.axis(label, width)}
	first, last := p.list.Visible()
	for i := first; i < last; i++ {
		cursor := " "
		if i == p.list.Cursor {
			cursor = p.env.Cursor
		}
		name := ui.Pad(p.label(i), label-2, false, p.env.Ellipsis)
		if i == p.list.Cursor {
			name = p.env.Selected.Render(cursor + name)
		} else {
			name = cursor + name
		}
		out = append(out, name+" "+p.draw(i, width-label))
	}
	return out
}

// labelWidth returns the width of the labels: that of the longest visible one, but
// at most a third of the screen.
func (p *Page) labelWidth(width int) int {
	w := 8
	first, last := p.list.Visible()
	for i := first; i < last; i++ {
		w = max(w, ui.Width(p.label(i))+2)
	}
	return min(w, max(8, width/3))
}

// label returns the text before the bars of a row.
func (p *Page) label(i int) string {
	if p.byNode {
		return printable.Escape(p.lanes[i].node)
	}
	j := &p.bars[i].job
	return printable.Escape(fmt.Sprintf("%s %s %s", format.JobID(j), status.JobState(j.State).Code(), j.User))
}

// window returns the period that is on the screen.
func (p *Page) window() (from, to int64) {
	from = p.now() - spans[p.span]/8 + p.shift
	return from, from + spans[p.span]
}

// axis returns the line of times, with a vertical bar at the present time.
func (p *Page) axis(label, width int) string {
	from, to := p.window()
	room := width - label
	if room <= 0 {
		return ""
	}
	line := []byte(strings.Repeat(" ", room))
	layout := "15:04"
	if to-from > 86400 {
		layout = "2 Jan"
	}
	loc := p.env.Format.Location
	if loc == nil {
		loc = time.UTC
	}
	step := labelStep((to - from) * 9 / int64(max(9, room)))
	_, zone := time.Unix(from, 0).In(loc).Zone()
	end := -1
	for t := (from+int64(zone))/step*step + step - int64(zone); t < to; t += step {
		text := time.Unix(t, 0).In(loc).Format(layout)
		x := int((t - from) * int64(room) / (to - from))
		if x > end && x+len(text) <= room {
			copy(line[x:], text)
			end = x + len(text)
		}
	}
	if x := p.cell(p.now(), room); x >= 0 && x < room {
		line[x] = '|'
	}
	return strings.Repeat(" ", label) + p.env.Header.Render(string(line))
}

// labelSteps are the steps between labels of the axis, in seconds.
var labelSteps = []int64{
	60, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400,
}

// labelStep returns the smallest step between labels that is at least least seconds.
func labelStep(least int64) int64 {
	for _, s := range labelSteps {
		if s >= least {
			return s
		}
	}
	return 14 * 86400
}

// cell returns the cell of an instant if the window has room cells: -1 if it is
// before the window, room+1 at most if it is after it.
func (p *Page) cell(t int64, room int) int {
	from, to := p.window()
	x := (t - from) * int64(room) / (to - from)
	return int(min(int64(room)+1, max(-1, x)))
}

// draw draws the bars of one row.
func (p *Page) draw(i, room int) string {
	if room <= 0 {
		return ""
	}
	cells := make([]string, room)
	for c := range cells {
		cells[c] = " "
	}
	if x := p.cell(p.now(), room); x >= 0 && x < room {
		cells[x] = "|"
	}
	bars := []*bar{}
	if p.byNode {
		bars = p.lanes[i].bars
	} else {
		bars = append(bars, &p.bars[i])
	}
	for _, b := range bars {
		p.drawBar(cells, b)
	}
	return strings.TrimRight(strings.Join(cells, ""), " ")
}

// drawBar draws a bar into cells, with the job's id in it if it fits.
func (p *Page) drawBar(cells []string, b *bar) {
	room := len(cells)
	from, to := p.cell(b.start, room), room
	if b.end > 0 {
		to = p.cell(b.end, room)
	}
	if to < 0 || from >= room {
		return
	}
	glyph, style := p.env.Used, p.env.Good
	if b.planned {
		glyph, style = p.env.Planned, p.env.Waiting
	}
	from, to = max(0, from), min(room, max(to, from+1))
	for x := from; x < to; x++ {
		cells[x] = style.Render(glyph)
	}
	if id := format.JobID(&b.job); p.byNode && to-from > len(id)+1 {
		for k := range id {
			cells[from+1+k] = style.Render(id[k : k+1])
		}
	}
	if b.end == 0 && to == room {
		cells[room-1] = style.Render(">")
	}
}

// Title implements ui.Page.
func (p *Page) Title() string {
	what := "jobs"
	if p.byNode {
		what = "nodes"
	}
	planned := 0
	for i := range p.bars {
		if p.bars[i].planned {
			planned++
		}
	}
	text := fmt.Sprintf("%d %s, %d planned, %s", p.rows(), what, planned, formatSpan(spans[p.span]))
	if len(p.bars) == maxBars {
		text += fmt.Sprintf(" [the first %d only]", maxBars)
	}
	if !p.query.Empty() {
		text += " /" + p.query.Text()
	}
	if p.feed.Err != nil && len(p.bars) > 0 {
		text += " [not up to date]"
	}
	return printable.Escape(text)
}

// formatSpan returns a period in words.
func formatSpan(seconds int64) string {
	switch {
	case seconds < 3600:
		return fmt.Sprintf("%d min", seconds/60)
	case seconds < 86400:
		return fmt.Sprintf("%d h", seconds/3600)
	}
	return fmt.Sprintf("%d d", seconds/86400)
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Help, ui.Back, ui.ZoomIn, ui.ZoomOut, ui.Group, ui.Filter, ui.Open}
}

// Command implements ui.Page.
func (p *Page) Command() string { return "squeue --start" }

// Current returns the id of the job under the cursor, empty if rows are nodes.
func (p *Page) Current() string {
	if p.byNode {
		return ""
	}
	return p.cursorName
}
