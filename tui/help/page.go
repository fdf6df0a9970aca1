// Package help is the page that describes the keys, the filter language and the
// commands. The keys come from the key map in use.
package help

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// Page describes the keys.
type Page struct {
	env    *data.Env
	keys   *ui.Keymap
	scroll ui.Viewport
}

// New returns the page for a key map.
func New(env *data.Env, keys *ui.Keymap) *Page { return &Page{env: env, keys: keys} }

// filters describes the filter language.
var filters = []string{
	"train            in any column; all terms must match",
	"user:ann,ben     one of these; * stands for any text; user!=ann",
	"st:PD            a state, short or long; st:R,CG",
	"gpu>=4 cpu<16    numbers: gpu cpu nodes prio mem",
	"time>2h wait<1h  times: time limit age wait (2h, 90s, 1-12:00:00)",
	"node:n[1-4]      jobs on any of these nodes",
	"/^run_[0-9]+$/   a regular expression; name~^run for one column",
	"!user:ann        rows that do not match; ~trn: letters in this order",
}

// commands describes the commands that can be typed after a colon.
var commands = []string{
	":queue :nodes :history :timeline :help   open a page; :q quits",
	":12 or :job 12, :output 12, :nodes n1    open a page",
	":filter TEXT, :save NAME, :load NAME     filters",
	":sort P,-p  :columns A,B  :format \"%i %j\" order and columns, as squeue -S -O -o",
	":user NAME, :me, :all                    whose jobs",
	":theme NAME, :mouse, :command            theme, mouse; copy the squeue command",
}

// lines returns the whole page in lines of at most width cells.
func (p *Page) lines(width int) []string {
	var out []string
	add := func(left, text string) {
		pad := 16
		if width < 50 {
			pad = 10
		}
		keys := p.env.Key.Render(ui.Pad(left, pad, false, p.env.Ellipsis))
		out = append(out, keys+" "+ui.Truncate(text, width-pad-1, p.env.Ellipsis))
	}
	for _, s := range ui.Sections {
		out = append(out, p.env.Header.Render(ui.Truncate(s.Title, width, p.env.Ellipsis)))
		for _, e := range s.Entries {
			help := p.keys.Help(e.Action)
			if help.Key == "" {
				help.Key = "(no key)"
			}
			add(help.Key, help.Desc)
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

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ui.Click:
		p.scroll.ScrollBy(msg.Wheel)
	case ui.Press:
		p.scroll.Press(msg.Action)
	}
	return nil
}

// View implements ui.Page.
func (p *Page) View(width, height int) []string { return p.scroll.Window(p.lines(width), height) }

// Title implements ui.Page.
func (p *Page) Title() string { return "keys, filters and commands" }

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action { return []ui.Action{ui.Back, ui.PageQueue, ui.Command} }

// Command implements ui.Page.
func (p *Page) Command() string { return "man squeue" }
