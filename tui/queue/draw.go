package queue

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// gutter is what stands before the columns: cursor and mark.
const gutter = 2

// View draws the header and the rows that fit.
func (p *Page) View(width, height int) []string {
	p.width, p.height = width, height
	if height <= 0 || width <= 0 {
		return nil
	}
	head := 1
	if height < 3 {
		head = 0
	}
	p.list.Resize(len(p.rows.list), height-head)
	cells := p.cells()
	shown := p.place(cells, width-gutter)
	var lines []string
	if head > 0 {
		lines = append(lines, p.header(shown, width))
	}
	if len(p.rows.list) == 0 {
		return append(lines, p.empty(width)...)
	}
	for i, c := range cells {
		lines = append(lines, p.line(p.list.Top+i, c, shown, width))
	}
	return lines
}

// empty says why there is nothing to see.
func (p *Page) empty(width int) []string {
	text := "The queue is empty."
	switch {
	case !p.rows.store.Complete && p.lostReason != "":
		text = p.lostReason
	case !p.rows.store.Complete:
		text = "Asking for the queue ..."
	case p.rows.store.Len() > 0:
		text = fmt.Sprintf("None of %d jobs passes the filter %q.", p.rows.store.Len(), p.rows.filter.Text())
	case p.env.Restricted:
		text = "No job passes the options of the command line."
	}
	return []string{p.env.Dim.Render(ui.Truncate(ui.Safe(text), width, p.env.Ellipsis))}
}

// cells are the texts of the rows that can be seen, escaped.
func (p *Page) cells() [][]string {
	first, last := p.list.Visible()
	out := make([][]string, 0, max(0, last-first))
	var job status.Job
	for i := first; i < last; i++ {
		r := &p.rows.list[i]
		p.rows.store.Load(&job, r.slot, p.picked)
		line := make([]string, len(p.columns))
		for c, col := range p.columns {
			p.buf = col.Append(p.buf[:0], &job, p.settings)
			line[c] = ui.Safe(string(p.buf))
			if r.group != nil {
				line[c] = p.groupCell(r.group, col, line[c])
			} else if r.member && isID(col) {
				line[c] = "  " + line[c]
			}
		}
		out = append(out, line)
	}
	return out
}

// groupCell is what the head of a group shows in a column.
func (p *Page) groupCell(g *group, c *column, value string) string {
	switch c.Name {
	case "JobArrayID", "JobID":
		sign := p.env.Collapsed
		if p.rows.expanded[g.id] {
			sign = p.env.Expanded
		}
		unit := "tasks"
		if g.het {
			unit = "parts"
		}
		return fmt.Sprintf("%s%d %d %s", sign, g.id, g.tasks, unit)
	case "ReasonList", "Reason", "NodeList":
		return g.stateCounts()
	case "UserName", "Name", "Partition", "Account", "QOS", "State", "StateCompact", "TimeLimit", "PriorityLong", "Priority", "SubmitTime":
		return value
	}
	return ""
}

// place is a column with its place on the screen.
type placement struct {
	index, x, width int
}

// fit chooses the columns that fit, and their widths. Columns grow with what
// they show and do not shrink again, so that nothing jumps while scrolling.
func (p *Page) place(cells [][]string, room int) []placement {
	if len(p.widths) != len(p.columns) {
		p.widths = make([]int, len(p.columns))
	}
	for c, col := range p.columns {
		w := max(p.widths[c], ui.Width(p.title(c)), col.least)
		for _, line := range cells {
			w = max(w, ui.Width(line[c]))
		}
		if p.widths[c] = min(w, max(col.most, ui.Width(p.title(c)))); col.fixed {
			p.widths[c] = col.most // as squeue: not wider, and not narrower
		}
	}
	out := p.selectColumns(room)
	x, last := 0, len(out)-1
	for i := range out {
		out[i].x = x
		if i == last {
			out[i].width = max(0, room-x)
		}
		x += out[i].width + 1
	}
	return out
}

// chosen are the columns that are shown. Scrolled to the side it is the id and
// what comes then; else the least important are left out until the rest fits.
func (p *Page) selectColumns(room int) []placement {
	var out []placement
	for c, col := range p.columns {
		if c < p.firstColumn && !isID(col) {
			continue
		}
		out = append(out, placement{index: c, width: p.widths[c]})
	}
	for p.requiredWidth(out) > room && len(out) > 1 {
		if !p.shrink(out, room) {
			out = p.dropColumn(out)
		}
	}
	return out
}

// need is the least room that the places take; the last one may be cut.
func (p *Page) requiredWidth(out []placement) int {
	n := 0
	for i, at := range out {
		if i == len(out)-1 && !isID(p.columns[at.index]) {
			n += min(at.width, p.columns[at.index].least)
		} else {
			n += at.width + 1
		}
	}
	return n
}

// shrink takes a little off the widest column that can be narrower; false:
// there is none.
func (p *Page) shrink(out []placement, room int) bool {
	widest := -1
	for i := range out {
		col := p.columns[out[i].index]
		if isID(col) || out[i].width <= col.least || out[i].width <= 8 || i == len(out)-1 {
			continue
		}
		if widest < 0 || out[i].width > out[widest].width {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	out[widest].width -= min(p.requiredWidth(out)-room, out[widest].width-max(8, p.columns[out[widest].index].least))
	return true
}

// drop leaves out the least important column.
func (p *Page) dropColumn(out []placement) []placement {
	worst := -1
	for i := range out {
		if rank := p.columns[out[i].index].rank; rank > 0 && (worst < 0 || rank >= p.columns[out[worst].index].rank) {
			worst = i
		}
	}
	if p.firstColumn > 0 || worst < 0 {
		worst = len(out) - 1
	}
	return append(out[:worst:worst], out[worst+1:]...)
}

// title is a column's header with the direction of the order.
func (p *Page) title(c int) string {
	col := p.columns[c]
	if len(p.rows.keys) > 0 && p.rows.keys[0].Column.Name == col.Name {
		if p.rows.keys[0].Descending {
			return col.Header + p.env.Down
		}
		return col.Header + p.env.Up
	}
	return col.Header
}

func (p *Page) header(shown []placement, width int) string {
	p.placements = shown
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", gutter))
	for i, at := range shown {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(ui.Pad(p.title(at.index), at.width, p.columns[at.index].right && i < len(shown)-1, ""))
	}
	return p.env.Header.Render(ui.Truncate(strings.TrimRight(b.String(), " "), width, ""))
}

// line draws one row.
func (p *Page) line(i int, cells []string, shown []placement, width int) string {
	r := &p.rows.list[i]
	selected, marked := i == p.list.Cursor, p.isMarked(i)
	var b strings.Builder
	b.WriteString(p.gutter(selected, marked))
	for n, at := range shown {
		if n > 0 {
			b.WriteByte(' ')
		}
		col := p.columns[at.index]
		text := ui.Pad(cells[at.index], at.width, col.right && n < len(shown)-1, p.ellipsis(col))
		if n == len(shown)-1 {
			text = strings.TrimRight(text, " ")
		}
		if !selected && (col.Name == "StateCompact" || col.Name == "State") {
			text = p.env.State(p.rows.store.Text(r.slot, "state")).Render(text)
		}
		b.WriteString(text)
	}
	switch {
	case selected:
		return p.env.Selected.Render(ui.Pad(b.String(), width, false, ""))
	case marked:
		return p.env.Marked.Render(p.env.Mark) + strings.TrimPrefix(b.String(), p.env.Mark)
	}
	return b.String()
}

// mark is what a cut leaves; an id that is wider than the screen is cut bare.
func (p *Page) ellipsis(c *column) string {
	if isID(c) {
		return ""
	}
	return p.env.Ellipsis
}

func (p *Page) gutter(selected, marked bool) string {
	mark, cursor := " ", " "
	if marked {
		mark = p.env.Mark
	}
	if selected {
		cursor = p.env.Cursor
	}
	return mark + cursor
}

// Title is how many jobs there are, and what is shown of them.
func (p *Page) Title() string {
	r := &p.rows
	n := len(r.filtered)
	text := fmt.Sprintf("%d jobs", n)
	if n == 1 {
		text = "1 job"
	}
	if all := r.store.Len(); n != all {
		text = fmt.Sprintf("%d of %d jobs", n, all)
	}
	if !r.filter.Empty() {
		text += " /" + r.filter.Text()
	}
	if len(p.marks) > 0 {
		text += fmt.Sprintf(" [%d marked]", len(p.marks))
	}
	if p.paused {
		text += " [paused]"
	}
	if p.lostReason != "" && r.store.Complete {
		text += " [not up to date]"
	}
	return ui.Safe(text)
}

// Row is the text of the row under the cursor, for the clipboard.
func (p *Page) rowText() string {
	j, ok := p.rows.job(p.list.Cursor)
	if !ok {
		return ""
	}
	var cells []string
	for _, c := range p.columns {
		cells = append(cells, format.Escape(string(c.Append(nil, &j, p.settings))))
	}
	return strings.Join(cells, " ")
}
