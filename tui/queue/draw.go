package queue

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// gutter is the width of the mark and the cursor before the columns.
const gutter = 2

// View implements ui.Page.
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
		return append(lines, p.empty(width))
	}
	for i, c := range cells {
		lines = append(lines, p.line(p.list.Top+i, c, shown, width))
	}
	return lines
}

// empty returns a line that says why no rows are shown.
func (p *Page) empty(width int) string {
	text := "The queue is empty."
	switch {
	case !p.rows.store.Complete && p.lostReason != "":
		text = p.lostReason
	case !p.rows.store.Complete:
		text = "Loading the queue ..."
	case p.rows.store.Len() > 0:
		text = fmt.Sprintf("None of %d jobs passes the filter %q.", p.rows.store.Len(), p.rows.filter.Text())
	case p.env.Restricted:
		text = "No job passes the options of the command line."
	}
	return p.env.Dim.Render(ui.Truncate(printable.Escape(text), width, p.env.Ellipsis))
}

// cells returns the escaped texts of the visible rows, by row and column.
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
			line[c] = printable.Escape(string(p.buf))
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

// groupCell returns what the header row of a group shows in a column. value is the
// value of its first row.
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
	case "UserName", "Name", "Partition", "Account", "QOS", "State", "StateCompact", "TimeLimit", "PriorityLong",
		"Priority", "SubmitTime":
		return value
	}
	return ""
}

// placement is a column with its position and width on the screen.
type placement struct {
	index, x, width int
}

// place returns the columns that fit into room cells, and their widths. Columns
// grow with their contents and never shrink, so that nothing jumps while scrolling.
func (p *Page) place(cells [][]string, room int) []placement {
	if len(p.widths) != len(p.columns) {
		p.widths = make([]int, len(p.columns))
	}
	for c, col := range p.columns {
		w := max(p.widths[c], ui.Width(p.title(c)), col.min)
		for _, line := range cells {
			w = max(w, ui.Width(line[c]))
		}
		p.widths[c] = min(w, max(col.max, ui.Width(p.title(c))))
		if col.fixed {
			p.widths[c] = col.max // exactly, as in squeue
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

// selectColumns returns the columns that are shown: if the page is scrolled to the
// side, the id and those from firstColumn on; then it leaves out the least important
// ones until the rest fit.
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

// requiredWidth returns the minimum width of the columns. The last one may be
// truncated.
func (p *Page) requiredWidth(out []placement) int {
	n := 0
	for i, at := range out {
		if i == len(out)-1 && !isID(p.columns[at.index]) {
			n += min(at.width, p.columns[at.index].min)
		} else {
			n += at.width + 1
		}
	}
	return n
}

// minShrunkWidth is the width below which columns are left out, not narrowed.
const minShrunkWidth = 8

// shrink narrows the widest column that can be narrower. It returns false if there
// is none.
func (p *Page) shrink(out []placement, room int) bool {
	widest := -1
	for i := range out {
		col := p.columns[out[i].index]
		if isID(col) || out[i].width <= max(col.min, minShrunkWidth) || i == len(out)-1 {
			continue
		}
		if widest < 0 || out[i].width > out[widest].width {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	spare := out[widest].width - max(minShrunkWidth, p.columns[out[widest].index].min)
	out[widest].width -= min(p.requiredWidth(out)-room, spare)
	return true
}

// dropColumn removes the least important column.
func (p *Page) dropColumn(out []placement) []placement {
	worst := -1
	for i := range out {
		rank := p.columns[out[i].index].rank
		if rank > 0 && (worst < 0 || rank >= p.columns[out[worst].index].rank) {
			worst = i
		}
	}
	if p.firstColumn > 0 || worst < 0 {
		worst = len(out) - 1
	}
	return append(out[:worst:worst], out[worst+1:]...)
}

// title returns a column's header, with the direction of the order if the queue is
// sorted by it.
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

// header draws the line of column headers.
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

// ellipsis returns the mark where a column is truncated. Ids, which are truncated
// only by the screen, have none.
func (p *Page) ellipsis(c *column) string {
	if isID(c) {
		return ""
	}
	return p.env.Ellipsis
}

// gutter returns the mark and the cursor before a row.
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

// Title returns how many jobs there are, and how many are shown.
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
	return printable.Escape(text)
}

// rowText returns the text of the row under the cursor, for the clipboard.
func (p *Page) rowText() string {
	j, ok := p.rows.job(p.list.Cursor)
	if !ok {
		return ""
	}
	var cells []string
	for _, c := range p.columns {
		cells = append(cells, printable.Escape(string(c.Append(nil, &j, p.settings))))
	}
	return strings.Join(cells, " ")
}
