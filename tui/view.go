package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/tui/ui"
)

// titleHeight returns the number of lines above the page.
func (m *Model) titleHeight() int {
	if m.height < 6 {
		return 0
	}
	return 1
}

// View draws the screen: a title, the page, and a status line with a notice,
// hints or the line that is being typed. A screen of one line shows only the row
// under the cursor, or the status line if it has something to say.
func (m *Model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	lines, cursor := m.render()
	v.Content = strings.Join(lines, "\n")
	v.Cursor = cursor
	return v
}

// render returns as many lines as the screen has, none wider than the screen.
func (m *Model) render() ([]string, *tea.Cursor) {
	if m.width <= 0 || m.height <= 0 {
		return nil, nil
	}
	bottom := 1
	if m.height == 1 && m.prompt == nil && m.notice.Text == "" {
		bottom = 0
	}
	var out []string
	if m.titleHeight() > 0 {
		out = append(out, m.title())
	}
	room := m.height - m.titleHeight() - bottom
	if m.overlay != nil {
		room = m.height - m.titleHeight()
		bottom = 0
		out = append(out, fitHeight(m.overlay.View(m.appearance, m.width, room), room)...)
	} else {
		out = append(out, fitHeight(m.page.View(m.width, room), room)...)
	}
	var cursor *tea.Cursor
	if bottom > 0 {
		line, x := m.statusLine()
		out = append(out, line)
		if x >= 0 {
			cursor = tea.NewCursor(min(x, m.width-1), len(out)-1)
			cursor.Blink = false // some terminals blink only if the program redraws
		}
	}
	for i, line := range out {
		if ansi.StringWidth(line) > m.width {
			out[i] = ansi.Truncate(line, m.width, "")
		}
	}
	return out, cursor
}

// fitHeight cuts lines to n, or pads them with empty lines.
func fitHeight(lines []string, n int) []string {
	if n <= 0 {
		return nil
	}
	if len(lines) > n {
		return lines[:n]
	}
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

// title returns the line at the top: the page, its title, and the user.
func (m *Model) title() string {
	name := ui.Hint(m.current.request.Page)
	left := name + "  " + m.page.Title()
	right := m.env.User
	if m.env.ReadOnly {
		right += " read-only"
	}
	right = printable.Escape(strings.TrimSpace(right))
	if room := m.width - ui.Width(right) - 2; room >= 24 {
		left = ui.Pad(left, room, false, m.appearance.Ellipsis) + "  " + right
	}
	return m.appearance.Title.Render(ui.Truncate(left, m.width, m.appearance.Ellipsis))
}

// statusLine returns the last line, and the column of the cursor in it; -1: the
// cursor is hidden.
func (m *Model) statusLine() (string, int) {
	switch {
	case m.prompt != nil:
		label := ui.Truncate(m.prompt.request.Label, max(1, m.width/2), "")
		text, at := m.prompt.line.View(m.width - ui.Width(label))
		return label + text, ui.Width(label) + at
	case m.notice.Text != "" && m.notice.Bad:
		return m.appearance.Bad.Render(ui.Truncate("! "+m.notice.Text, m.width, m.appearance.Ellipsis)), -1
	case m.notice.Text != "":
		return m.appearance.Notice.Render(ui.Truncate(m.notice.Text, m.width, m.appearance.Ellipsis)), -1
	}
	return m.hints(), -1
}

// hints returns the most useful keys of the page, as many as fit.
func (m *Model) hints() string {
	var b strings.Builder
	used := 0
	for _, a := range m.page.Hints() {
		key, what := m.keys.Key(a), ui.Hint(a)
		if key == "" || what == "" {
			continue
		}
		text := fmt.Sprintf("%s %s", key, what)
		if used > 0 {
			if used+2+ui.Width(text) > m.width {
				break
			}
			b.WriteString("  ")
			used += 2
		}
		b.WriteString(m.appearance.Key.Render(key) + " " + what)
		used += ui.Width(text)
	}
	return b.String()
}
