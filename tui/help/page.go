// Package help is the page that tells what keys do. It is made of the key map
// in use, so that it cannot tell anything else.
package help

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// Page tells what keys do.
type Page struct {
	env  *data.Env
	keys *ui.Keymap
	top  int
	n    int // lines
	h    int
}

// New makes the page.
func New(env *data.Env, keys *ui.Keymap) *Page { return &Page{env: env, keys: keys} }

// filters explains the filter language, and what can be typed after a colon.
var filters = []string{
	"train            in any column; all words must be there",
	"user:ann,ben     one of these; * stands for anything; user!=ann",
	"st:PD            a state, short or long; st:R,CG",
	"gpu>=4 cpu<16    numbers: gpu cpu nodes prio mem",
	"time>2h wait<1h  times: time limit age wait (2h, 90s, 1-12:00:00)",
	"node:n[1-4]      jobs on any of these nodes",
	"/^run_[0-9]+$/   a regular expression; name~^run for one column",
	"!user:ann        what does not match; ~trn: letters in this order",
}

var commands = []string{
	":queue :nodes :history :timeline :help   go there; :q leaves",
	":12 or :job 12, :output 12, :nodes n1    go there",
	":filter TEXT, :save NAME, :load NAME     filters",
	":sort P,-p  :columns A,B  :format \"%i %j\" order and columns, as squeue -S -O -o",
	":user NAME, :me, :all                    whose jobs",
	":theme NAME, :mouse, :command            looks; what squeue shows the same",
}

func (p *Page) lines(width int) []string {
	var out []string
	add := func(left, text string) {
		pad := 16
		if width < 50 {
			pad = 10
		}
		out = append(out, p.env.Key.Render(ui.Pad(left, pad, false, p.env.Ellipsis))+" "+ui.Truncate(text, width-pad-1, p.env.Ellipsis))
	}
	for _, s := range ui.Sections {
		out = append(out, p.env.Header.Render(ui.Truncate(s.Title, width, p.env.Ellipsis)))
		for _, e := range s.Entries {
			keys := p.keys.Keys(e.Action)
			if keys == "" {
				keys = "(no key)"
			}
			add(keys, e.Help)
		}
		out = append(out, "")
	}
	out = append(out, p.env.Header.Render("Filters"))
	for _, line := range filters {
		out = append(out, ui.Wrap(line, width)...)
	}
	out = append(out, "", p.env.Header.Render("Commands"))
	for _, line := range commands {
		out = append(out, ui.Wrap(line, width)...)
	}
	return out
}

// Update takes a message in.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ui.Click:
		p.top += msg.Wheel
	case ui.Press:
		page := max(1, p.h-1)
		switch msg.Action {
		case ui.Up:
			p.top--
		case ui.Down:
			p.top++
		case ui.PageUp, ui.HalfUp:
			p.top -= page
		case ui.PageDown, ui.HalfDown:
			p.top += page
		case ui.Top:
			p.top = 0
		case ui.Bottom:
			p.top = p.n
		}
	}
	p.top = max(0, min(p.top, p.n-p.h))
	return nil
}

// View draws the page.
func (p *Page) View(width, height int) []string {
	lines := p.lines(width)
	p.n, p.h = len(lines), height
	p.top = max(0, min(p.top, p.n-height))
	return lines[p.top:min(len(lines), p.top+max(0, height))]
}

// Title says what the page is.
func (p *Page) Title() string { return "keys, filters and commands" }

// Hints are the most useful actions.
func (p *Page) Hints() []ui.Action { return []ui.Action{ui.Back, ui.PageQueue, ui.Command} }

// Line is the command that tells more.
func (p *Page) Command() string { return "man squeue" }
