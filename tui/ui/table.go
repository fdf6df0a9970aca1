package ui

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
)

// Table draws rows of texts in columns under headers. It is for lists that are
// short enough to hold the texts of all rows.
type Table struct {
	Headers []string
	Right   []bool // by column; nil: none
	Ranks   []int  // by column: the higher, the earlier it is left out; 0: never
	Rows    [][]string
	Styles  []Style // of the second column, by row; nil: none

	List List
}

// View draws the headers and the visible rows. It escapes the texts.
func (t *Table) View(l *Appearance, width, height int) []string {
	head := 1
	if height < 3 {
		head = 0
	}
	t.List.Resize(len(t.Rows), height-head)
	first, last := t.List.Visible()
	widths := t.widths(first, last)
	shown := t.fit(widths, width-2)
	var out []string
	if head > 0 {
		out = append(out, l.Header.Render(Truncate("  "+t.line(t.Headers, shown, widths, width-2, l, nil), width, "")))
	}
	for i := first; i < last; i++ {
		if i == t.List.Cursor {
			line := l.Cursor + " " + t.line(t.Rows[i], shown, widths, width-2, l, nil)
			out = append(out, l.Selected.Render(Pad(line, width, false, "")))
			continue
		}
		var style *Style
		if t.Styles != nil {
			style = &t.Styles[i]
		}
		out = append(out, "  "+t.line(t.Rows[i], shown, widths, width-2, l, style))
	}
	return out
}

func (t *Table) widths(first, last int) []int {
	widths := make([]int, len(t.Headers))
	for c, h := range t.Headers {
		widths[c] = Width(h)
		for _, row := range t.Rows[first:last] {
			widths[c] = max(widths[c], Width(printable.Escape(row[c])))
		}
	}
	return widths
}

// fit returns the columns to show: it leaves out those of the highest rank until
// the rest fit into room cells. The last column may be truncated.
func (t *Table) fit(widths []int, room int) []int {
	var shown []int
	for c := range t.Headers {
		shown = append(shown, c)
	}
	for len(shown) > 1 {
		need := 0
		for i, c := range shown {
			if i == len(shown)-1 {
				need += min(widths[c], 8)
			} else {
				need += widths[c] + 1
			}
		}
		if need <= room {
			break
		}
		worst := slices.MaxFunc(shown, func(a, b int) int { return t.rank(a) - t.rank(b) })
		if t.rank(worst) == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(c int) bool { return c == worst })
	}
	return shown
}

func (t *Table) rank(c int) int {
	if c < len(t.Ranks) {
		return t.Ranks[c]
	}
	return 0
}

func (t *Table) line(cells []string, shown, widths []int, room int, l *Appearance, style *Style) string {
	var b strings.Builder
	for i, c := range shown {
		if i > 0 {
			b.WriteByte(' ')
			room--
		}
		w := min(widths[c], room)
		text := printable.Escape(cells[c])
		if i == len(shown)-1 {
			text = Truncate(text, room, l.Ellipsis)
		} else {
			text = Pad(text, w, c < len(t.Right) && t.Right[c], l.Ellipsis)
		}
		room -= w
		if style != nil && c == 1 {
			text = style.Render(text)
		}
		b.WriteString(text)
	}
	return b.String()
}

// Click moves the cursor to the row of a click, or scrolls. It returns true if the
// cursor was on that row before.
func (t *Table) Click(c Click, height int) (again bool) {
	if c.Wheel != 0 {
		t.List.Scroll(c.Wheel)
		return false
	}
	head := height - t.List.Height
	i := t.List.Top + c.Y - head
	if c.Y < head || i >= len(t.Rows) {
		return false
	}
	again = i == t.List.Cursor
	t.List.MoveTo(i)
	return again
}
