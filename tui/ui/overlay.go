package ui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
)

// Overlay is drawn over the page and receives all keys until it is closed.
type Overlay interface {
	// Press handles a key; closed reports that the overlay is to be closed.
	Press(k tea.KeyPressMsg, a Action) (cmd tea.Cmd, closed bool)
	// View draws at most height lines of at most width cells.
	View(l *Appearance, width, height int) []string
}

// NewPanel returns an overlay that shows lines of text until a key that does not
// scroll closes it.
func NewPanel(p Panel) Overlay { return &panel{Panel: p} }

type panel struct {
	Panel
	scroll Viewport
}

func (p *panel) Press(_ tea.KeyPressMsg, a Action) (tea.Cmd, bool) {
	return nil, !p.scroll.Press(a)
}

func (p *panel) View(l *Appearance, width, height int) []string {
	if height <= 0 {
		return nil
	}
	var lines []string
	for _, line := range p.Lines {
		lines = append(lines, Wrap(line, width)...)
	}
	seen := p.scroll.Window(lines, max(1, height-1))
	out := []string{l.Title.Render(Truncate(p.Title, width, l.Ellipsis))}
	if height == 1 {
		return out
	}
	return append(out, seen...)
}

// NewConfirm returns an overlay that asks for a confirmation.
func NewConfirm(c Confirm) Overlay { return &confirm{Confirm: c} }

type confirm struct {
	Confirm
	input  TextInput
	wrong  bool
	scroll Viewport
}

// scrollKeys scroll the text of a confirmation; all other keys answer it.
var scrollKeys = map[string]Action{"up": Up, "down": Down, "pgup": PageUp, "pgdown": PageDown}

func (c *confirm) Press(k tea.KeyPressMsg, _ Action) (tea.Cmd, bool) {
	switch key := k.String(); {
	case scrollKeys[key] != "" && c.scroll.Len > c.scroll.Height:
		c.scroll.Press(scrollKeys[key])
	case key == "esc" || key == Interrupt:
		return NotifyCmd("Nothing was done."), true
	case c.Answer == "" && (key == "y" || key == "Y"):
		return c.OnConfirm(), true
	case c.Answer == "":
		return NotifyCmd("Nothing was done."), true
	case key == "enter" && strings.TrimSpace(c.input.Text()) == c.Answer:
		return c.OnConfirm(), true
	case key == "enter":
		c.wrong = true
		c.input.Set("")
	default:
		c.input.Press(k)
		c.wrong = false
	}
	return nil, false
}

// Insert adds pasted text to the answer.
func (c *confirm) Insert(text string) { c.input.Insert(text) }

func (c *confirm) View(l *Appearance, width, height int) []string {
	question := "y: yes    any other key: no"
	if c.Answer != "" {
		question = fmt.Sprintf("Type %s and Enter, or Esc: %s_", c.Answer, c.input.Text())
		if c.wrong {
			question = "That is a different number. " + question
		}
	}
	var rows []string
	for _, line := range c.Lines {
		rows = append(rows, Wrap(line, width)...)
	}
	// The question stays visible however long the text above it is.
	questionLines := Wrap(question, width)
	room := height - 1 - len(questionLines)
	if len(rows) > room && room > 1 {
		room--
		seen := c.scroll.Window(rows, room)
		more := fmt.Sprintf(
			"lines %d-%d of %d    PgUp PgDn: the others",
			c.scroll.Top+1,
			c.scroll.Top+len(seen),
			len(rows),
		)
		rows = append(slices.Clip(seen), l.Dim.Render(Truncate(more, width, l.Ellipsis)))
	} else {
		rows = c.scroll.Window(rows, room)
	}
	out := append([]string{l.Bad.Render(Truncate(c.Title, width, l.Ellipsis))}, rows...)
	for _, w := range questionLines {
		out = append(out, l.Strong.Render(w))
	}
	if len(out) > height {
		return []string{l.Bad.Render(Truncate(c.Title+" "+question, width, ""))}[:max(0, min(1, height))]
	}
	return out
}

// NewChoose returns an overlay with a list of choices.
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
		return c.OnSubmit(c.Items), true
	case key == "enter":
		return c.OnSubmit(c.Items[at : at+1]), true
	default:
		c.list.Press(a)
	}
	return nil, false
}

func (c *choose) View(l *Appearance, width, height int) []string {
	if height <= 0 {
		return nil
	}
	title := c.Title + "  Enter: choose  Esc: cancel"
	if c.Toggle {
		title = c.Title + "  Space: on, off  J K: down, up  Enter: done  Esc: cancel"
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
		name := Pad(printable.Escape(item.Name), 20, false, l.Ellipsis)
		line := Truncate(cursor+sign+name+" "+printable.Escape(item.Text), width, l.Ellipsis)
		if i == c.list.Cursor {
			line = l.Selected.Render(Pad(line, width, false, ""))
		}
		out = append(out, line)
	}
	return out
}
