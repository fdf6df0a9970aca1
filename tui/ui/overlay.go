package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Overlay is something that takes all keys until it is closed.
type Overlay interface {
	// Press takes a key in; closed: it is done with.
	Press(k tea.KeyPressMsg, a Action) (cmd tea.Cmd, closed bool)
	// View draws at most height lines of at most width cells.
	View(l *Looks, width, height int) []string
}

// NewPanel shows a panel until it is closed.
func NewPanel(p Panel) Overlay { return &panel{Panel: p} }

type panel struct {
	Panel
	top, seen int
}

func (p *panel) Press(_ tea.KeyPressMsg, a Action) (tea.Cmd, bool) {
	last := max(0, len(p.Lines)-p.seen)
	switch a {
	case Up:
		p.top--
	case Down:
		p.top++
	case PageUp, HalfUp:
		p.top -= max(1, p.seen-1)
	case PageDown, HalfDown:
		p.top += max(1, p.seen-1)
	case Top:
		p.top = 0
	case Bottom:
		p.top = last
	default:
		return nil, true
	}
	p.top = max(0, min(p.top, last))
	return nil, false
}

func (p *panel) View(l *Looks, width, height int) []string {
	if height <= 0 {
		return nil
	}
	var lines []string
	for _, line := range p.Lines {
		lines = append(lines, Wrap(line, width)...)
	}
	p.seen = max(1, height-1)
	p.top = max(0, min(p.top, len(lines)-p.seen))
	out := []string{l.Title.Render(Cut(p.Title, width, l.Cut))}
	if height == 1 {
		return out
	}
	return append(out, lines[p.top:min(len(lines), p.top+p.seen)]...)
}

// NewConfirm asks for a confirmation.
func NewConfirm(c Confirm) Overlay { return &confirm{Confirm: c} }

type confirm struct {
	Confirm
	typed Line
	wrong bool
}

func (c *confirm) Press(k tea.KeyPressMsg, _ Action) (tea.Cmd, bool) {
	switch key := k.String(); {
	case key == "esc" || key == "ctrl+c":
		return Say("Nothing was done."), true
	case c.Word == "" && (key == "y" || key == "Y"):
		return c.Do(), true
	case c.Word == "":
		return Say("Nothing was done."), true
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

func (c *confirm) View(l *Looks, width, height int) []string {
	question := "y: yes    any other key: no"
	if c.Word != "" {
		question = fmt.Sprintf("Type %s and Enter, or Esc: %s_", c.Word, c.typed.Text())
		if c.wrong {
			question = "That was not it. " + question
		}
	}
	// The question is never pushed off a small screen by what is asked about.
	out := []string{l.Bad.Render(Cut(c.Title, width, l.Cut))}
	asked := Wrap(question, width)
	room := height - 1 - len(asked)
	for _, line := range c.Lines {
		for i, w := range Wrap(line, width) {
			if room <= 0 || i >= 8 {
				break
			}
			out = append(out, w)
			room--
		}
	}
	for _, w := range asked {
		out = append(out, l.Strong.Render(w))
	}
	if len(out) > height {
		return []string{l.Bad.Render(Cut(c.Title+" "+question, width, ""))}[:max(0, min(1, height))]
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
	case key == "esc" || key == "q" || key == "ctrl+c":
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

func (c *choose) View(l *Looks, width, height int) []string {
	if height <= 0 {
		return nil
	}
	title := c.Title + "  Enter: choose  Esc: leave it"
	if c.Toggle {
		title = c.Title + "  Space: on, off  J K: down, up  Enter: done  Esc: leave it"
	}
	out := []string{l.Title.Render(Cut(title, width, l.Cut))}
	c.list.Resize(len(c.Items), height-1)
	first, last := c.list.Seen()
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
		line := Cut(cursor+sign+Pad(Safe(item.Name), 20, false, l.Cut)+" "+Safe(item.Text), width, l.Cut)
		if i == c.list.Cursor {
			line = l.Selected.Render(Pad(line, width, false, ""))
		}
		out = append(out, line)
	}
	return out
}
