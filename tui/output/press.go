package output

import (
	"regexp"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/ui"
)

func (p *Page) press(k ui.Press) tea.Cmd {
	page := max(1, p.height-1)
	switch k.Action {
	case ui.Up:
		p.scroll(-1)
	case ui.Down:
		p.scroll(1)
	case ui.PageUp:
		p.scroll(-page)
	case ui.PageDown:
		p.scroll(page)
	case ui.HalfUp:
		p.scroll(-max(1, page/2))
	case ui.HalfDown:
		p.scroll(max(1, page/2))
	case ui.Top:
		p.top, p.follow = 0, false
	case ui.Bottom:
		p.follow = true
	case ui.Left:
		p.across = max(0, p.across-8)
	case ui.Right:
		p.across += 8
	case ui.Group:
		p.wrap = !p.wrap
	case ui.Stamps:
		p.stamps = !p.stamps
	case ui.Pause:
		if p.paused = !p.paused; !p.paused {
			return p.look()
		}
	case ui.Source:
		return p.choose()
	case ui.Errors, ui.Output:
		return p.other(k.Action == ui.Errors)
	case ui.Filter:
		return p.env.Send(ui.Ask{Label: "search: ", History: "search", Done: p.find})
	case ui.Next:
		return p.jump(1)
	case ui.Prev:
		return p.jump(-1)
	case ui.Clear:
		p.search = nil
	case ui.Copy:
		return p.env.Send(ui.Clip{Text: p.path, What: p.path})
	case ui.ShowLine:
		return p.env.Send(ui.Clip{Text: p.Line(), What: p.Line()})
	}
	return nil
}

// other shows the other stream.
func (p *Page) other(wantErrors bool) tea.Cmd {
	if p.errors == wantErrors {
		return nil
	}
	p.errors = wantErrors
	return p.anew()
}

// anew forgets what was read and begins again.
func (p *Page) anew() tea.Cmd {
	p.drop()
	p.path, p.err, p.away, p.follow, p.tasks, p.asked = "", nil, nil, true, 0, false
	p.forget()
	if p.job != nil {
		return p.begin()
	}
	p.asked = true
	return p.askOver()
}

// scroll moves the window; at the end it follows again.
func (p *Page) scroll(n int) {
	last := max(0, p.lines()-p.height)
	if p.follow {
		p.top = last
	}
	p.top = max(0, min(last, p.top+n))
	p.follow = p.top >= last && n >= 0
}

// find looks for text from the end on; one that is no regular expression is
// looked for as it is.
func (p *Page) find(text string) tea.Cmd {
	if text == "" {
		p.search = nil
		return nil
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		re = regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
	}
	p.search, p.found = re, p.lines()
	return p.jump(-1)
}

// jump goes to the next match in a direction, round the ends.
func (p *Page) jump(n int) tea.Cmd {
	if p.search == nil {
		return p.env.Say("Search for something first.")
	}
	total := p.lines()
	for step := 1; step <= total; step++ {
		i := ((p.found+n*step)%total + total) % total
		if text, _ := p.line(i); p.search.MatchString(text) {
			p.found, p.follow = i, false
			p.top = max(0, min(i-p.height/2, total-p.height))
			return nil
		}
	}
	return p.env.Say("It is not there.")
}
