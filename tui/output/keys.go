package output

import (
	"regexp"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/ui"
)

// press runs the action of a key.
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
		p.column = max(0, p.column-8)
	case ui.Right:
		p.column += 8
	case ui.Group:
		p.wrap = !p.wrap
	case ui.Stamps:
		p.stamps = !p.stamps
	case ui.Pause:
		if p.paused = !p.paused; !p.paused {
			return p.read()
		}
	case ui.Source:
		return p.requestSteps()
	case ui.Output:
		return p.setStream(ui.Stdout)
	case ui.Errors:
		return p.setStream(ui.Stderr)
	case ui.Filter:
		return p.env.Post(ui.Prompt{Label: "search: ", History: "search", OnSubmit: p.search})
	case ui.Next:
		return p.nextMatch(1)
	case ui.Prev:
		return p.nextMatch(-1)
	case ui.Clear:
		p.pattern = nil
	case ui.Copy:
		return p.env.Post(ui.SetClipboard{Text: p.path, What: p.path})
	case ui.ShowCommand:
		return p.env.Post(ui.SetClipboard{Text: p.Command(), What: p.Command()})
	}
	return nil
}

// setStream shows a stream of the job's output.
func (p *Page) setStream(stream ui.Stream) tea.Cmd {
	if p.stream == stream {
		return nil
	}
	p.stream = stream
	return p.restart()
}

// restart discards the lines that were read and reads from the beginning.
func (p *Page) restart() tea.Cmd {
	p.closeSource()
	p.path, p.err, p.fileError, p.follow, p.tasks, p.recordRequested = "", nil, nil, true, 0, false
	p.forget()
	if p.job != nil {
		return p.connect()
	}
	p.recordRequested = true
	return p.requestRecord()
}

// scroll moves the window by n lines. At the end, the page follows the output again.
func (p *Page) scroll(n int) {
	last := max(0, p.lineCount()-p.height)
	if p.follow {
		p.top = last
	}
	p.top = max(0, min(last, p.top+n))
	p.follow = p.top >= last && n >= 0
}

// search searches backwards from the end for a regular expression, or for the text
// itself if it is not one.
func (p *Page) search(text string) tea.Cmd {
	if text == "" {
		p.pattern = nil
		return nil
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		re = regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
	}
	p.pattern, p.found = re, p.lineCount()
	return p.nextMatch(-1)
}

// nextMatch moves to the next match, forwards (n = 1) or backwards (n = -1), and
// wraps around at the ends.
func (p *Page) nextMatch(n int) tea.Cmd {
	if p.pattern == nil {
		return p.env.Notify("Search for something first.")
	}
	total := p.lineCount()
	for step := 1; step <= total; step++ {
		i := ((p.found+n*step)%total + total) % total
		if text, _ := p.line(i); p.pattern.MatchString(text) {
			p.found, p.follow = i, false
			p.top = max(0, min(i-p.height/2, total-p.height))
			return nil
		}
	}
	return p.env.Notify("No line matches.")
}
