package ui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Overlay is something that takes all keys until it is closed.
type Overlay interface {
	// Press takes a key in; closed: it is done with.
	Press(k tea.KeyPressMsg, a Action) (cmd tea.Cmd, closed bool)
	// View draws at most height lines of at most width cells.
	View(l *Appearance, width, height int) []string
}

// NewPanel shows a panel until it is closed.
func NewPanel(p Panel) Overlay { return &panel{Panel: p} }

type panel struct {
	Panel
	scroll viewport
}

// viewport is a part of some rows, as they were drawn last.
type viewport struct {
	top, height, rows int
}

// move scrolls; it returns false if the action does not scroll.
func (v *viewport) move(a Action) bool {
	switch a {
	case Up:
		v.top--
	case Down:
		v.top++
	case PageUp, HalfUp:
		v.top -= max(1, v.height-1)
	case PageDown, HalfDown:
		v.top += max(1, v.height-1)
	case Top:
		v.top = 0
	case Bottom:
		v.top = v.rows
	default:
		return false
	}
	v.clamp()
	return true
}

func (v *viewport) clamp() { v.top = max(0, min(v.top, v.rows-v.height)) }

// show returns the rows that are seen in a window of that height.
func (v *viewport) show(rows []string, height int) []string {
	v.rows, v.height = len(rows), height
	v.clamp()
	return rows[v.top:min(len(rows), v.top+height)]
}

func (p *panel) Press(_ tea.KeyPressMsg, a Action) (tea.Cmd, bool) {
	return nil, !p.scroll.move(a)
}

func (p *panel) View(l *Appearance, width, height int) []string {
	if height <= 0 {
		return nil
	}
	var lines []string
	for _, line := range p.Lines {
		lines = append(lines, Wrap(line, width)...)
	}
	seen := p.scroll.show(lines, max(1, height-1))
	out := []string{l.Title.Render(Truncate(p.Title, width, l.Ellipsis))}
	if height == 1 {
		return out
	}
	return append(out, seen...)
}

// NewConfirm asks for a confirmation.
func NewConfirm(c Confirm) Overlay { return &confirm{Confirm: c} }

type confirm struct {
	Confirm
	typed  TextInput
	wrong  bool
	scroll viewport
}

// scrollKeys scroll what is to be confirmed; other keys answer.
var scrollKeys = map[string]Action{"up": Up, "down": Down, "pgup": PageUp, "pgdown": PageDown}

func (c *confirm) Press(k tea.KeyPressMsg, _ Action) (tea.Cmd, bool) {
	switch key := k.String(); {
	case scrollKeys[key] != "" && c.scroll.rows > c.scroll.height:
		c.scroll.move(scrollKeys[key])
	case key == "esc" || key == Interrupt:
		return NotifyCmd("Nothing was done."), true
	case c.Word == "" && (key == "y" || key == "Y"):
		return c.Do(), true
	case c.Word == "":
		return NotifyCmd("Nothing was done."), true
	case key == "enter" && strings.TrimSpace(c.typed.Text()) == c.Word:
		return c.Do(), true
	case key == "enter":
		c.wrong = true
		c.typed.Set("")
	default:
		c.typed.Press(k)
		c.wrong = false
	}
	return nil, false
}

// Insert takes pasted text.
func (c *confirm) Insert(text string) { c.typed.Insert(text) }

func (c *confirm) View(l *Appearance, width, height int) []string {
	question := "y: yes    any other key: no"
	if c.Word != "" {
		question = fmt.Sprintf("Type %s and Enter, or Esc: %s_", c.Word, c.typed.Text())
		if c.wrong {
			question = "That was not it. " + question
		}
	}
	var rows []string
	for _, line := range c.Lines {
		rows = append(rows, Wrap(line, width)...)
	}
	// The question is never pushed off a small screen by what is asked about.
	asked := Wrap(question, width)
	room := height - 1 - len(asked)
	if len(rows) > room && room > 1 {
		room--
		seen := c.scroll.show(rows, room)
		more := fmt.Sprintf("lines %d-%d of %d    PgUp PgDn: the others", c.scroll.top+1, c.scroll.top+len(seen), len(rows))
		rows = append(slices.Clip(seen), l.Dim.Render(Truncate(more, width, l.Ellipsis)))
	} else {
		rows = c.scroll.show(rows, max(0, room))
	}
	out := append([]string{l.Bad.Render(Truncate(c.Title, width, l.Ellipsis))}, rows...)
	for _, w := range asked {
		out = append(out, l.Strong.Render(w))
	}
	if len(out) > height {
		return []string{l.Bad.Render(Truncate(c.Title+" "+question, width, ""))}[:max(0, min(1, height))]
	}
	return out
}

// NewChoose shows a list to choose from.
func NewChoose(c Choose) Overlay { return &choose{Choose: c} }

type choose struct {
	Choose
	list List
}

func (c *choose) Press(k tea.KeyPressMsg, a Action) (tea.Cmd, bool) {
	c.list.Resize(len(c.Items), c.list.Height)
	at := c.list.Cursor
	switch key := k.String(); {
	case key == "esc" || a == Quit:
		return nil, true
	case len(c.Items) == 0:
		return nil, true
	case c.Toggle && (key == "space" || key == "x"):
		c.Items[at].On = !c.Items[at].On
	case c.Toggle && (key == "shift+up" || key == "K") && at > 0:
		c.Items[at], c.Items[at-1] = c.Items[at-1], c.Items[at]
		c.list.Move(-1)
	case c.Toggle && (key == "shift+down" || key == "J") && at < len(c.Items)-1:
		c.Items[at], c.Items[at+1] = c.Items[at+1], c.Items[at]
		c.list.Move(1)
	case key == "enter" && c.Toggle:
		return c.Done(c.Items), true
	case key == "enter":
		return c.Done(c.Items[at : at+1]), true
	default:
		c.list.Press(a)
	}
	return nil, false
}

func (c *choose) View(l *Appearance, width, height int) []string {
	if height <= 0 {
		return nil
	}
	title := c.Title + "  Enter: choose  Esc: leave it"
	if c.Toggle {
		title = c.Title + "  Space: on, off  J K: down, up  Enter: done  Esc: leave it"
	}
	out := []string{l.Title.Render(Truncate(title, width, l.Ellipsis))}
	c.list.Resize(len(c.Items), height-1)
	first, last := c.list.Visible()
	for i := first; i < last; i++ {
		item := &c.Items[i]
		sign := ""
		if c.Toggle {
			sign = "[ ] "
			if item.On {
				sign = "[x] "
			}
		}
		cursor := "  "
		if i == c.list.Cursor {
			cursor = l.Cursor + " "
		}
		line := Truncate(cursor+sign+Pad(Safe(item.Name), 20, false, l.Ellipsis)+" "+Safe(item.Text), width, l.Ellipsis)
		if i == c.list.Cursor {
			line = l.Selected.Render(Pad(line, width, false, ""))
		}
		out = append(out, line)
	}
	return out
}
