package output

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/tui/ui"
)

// View implements ui.Page.
func (p *Page) View(width, height int) []string {
	p.width, p.height = width, max(0, height)
	if p.lineCount() == 0 {
		out := ui.Wrap(printable.Escape(p.emptyText()), width)
		for i := range out {
			out[i] = p.env.Dim.Render(out[i])
		}
		return out[:min(len(out), p.height)]
	}
	var out []string
	if p.follow {
		out = p.draw(max(0, p.lineCount()-height), p.lineCount())
		return out[max(0, len(out)-height):]
	}
	p.top = max(0, min(p.top, p.lineCount()-1))
	out = p.draw(p.top, min(p.lineCount(), p.top+height))
	return out[:min(len(out), height)]
}

// emptyText returns a sentence that says why no output is shown.
func (p *Page) emptyText() string {
	_, file := p.source.(*fileSource)
	switch {
	case p.feed.Err != nil && p.source == nil:
		return p.feed.Err.Error()
	case p.err != nil && p.fileError != nil:
		return p.fileError.Error() + "; reading it from the agent failed: " + p.err.Error()
	case errors.Is(p.err, fs.ErrNotExist) && file:
		return p.path + " does not exist yet, or is not on a volume of this machine." + p.noAgentReason()
	case p.err != nil && file:
		return p.err.Error() + "." + p.noAgentReason()
	case p.err != nil:
		return p.err.Error()
	case p.source == nil:
		return "Looking for the output ..."
	case p.choice.kind == fromStep && p.finished:
		return "The step has ended."
	case p.choice.kind == fromStep:
		return "The step has written nothing since this page opened."
	}
	return p.path + " is empty."
}

// noAgentReason returns a sentence that says why the output cannot come from the
// job's agent.
func (p *Page) noAgentReason() string {
	switch {
	case p.job == nil || p.mayAttach():
		return ""
	case p.job.State == "RUNNING":
		return " Only " + p.job.User + " may read it from the job's agent."
	case p.job.State == "PENDING":
		return " The job has not started."
	}
	return " The job is " + p.job.State + ", so its agent cannot send it."
}

// draw draws the lines from up to, not including, to.
func (p *Page) draw(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		raw, at := p.line(i)
		text := printable.Escape(raw)
		if p.stamps {
			stamp := "              "
			if !at.IsZero() {
				stamp = at.In(p.env.Now().Location()).Format("15:04:05.000") + "  "
			}
			text = stamp + text
		}
		isMatch := p.pattern != nil && p.pattern.MatchString(text)
		parts := []string{ui.Slice(text, p.column, p.width)}
		if p.wrap {
			parts = pieces(text, p.width)
		}
		for _, part := range parts {
			if isMatch && i == p.found {
				part = p.env.Selected.Render(part)
			} else if isMatch {
				part = p.env.Marked.Render(part)
			}
			out = append(out, part)
		}
	}
	return out
}

// pieces splits a line into pieces of at most width cells.
func pieces(text string, width int) []string {
	if width <= 0 || ui.Width(text) <= width {
		return []string{text}
	}
	var out []string
	for from, all := 0, ui.Width(text); from < all; from += width {
		out = append(out, ui.Slice(text, from, width))
	}
	return out
}

// Title returns the job, the source, and whether the page follows it.
func (p *Page) Title() string {
	text := p.id + " " + p.sourceText()
	switch {
	case p.finished && p.err == nil:
		text += " [ended]"
	case p.paused:
		text += " [paused]"
	case p.follow:
		text += " [following]"
	default:
		text += fmt.Sprintf(" [line %d of %d]", p.top+1, p.lineCount())
	}
	if p.buffer.cut {
		text += " [the last 10 MB]"
	}
	if p.err != nil && p.lineCount() > 0 {
		text += " [" + p.err.Error() + "]"
	}
	return printable.Escape(text)
}

// sourceText returns a description of the source.
func (p *Page) sourceText() string {
	what := p.path
	if p.choice.kind == fromStep {
		what = fmt.Sprintf("step %d", p.choice.step)
		if p.stream == ui.Stderr {
			what += " errors"
		}
		if p.task != noTask {
			what += fmt.Sprintf(" task %d of %d", p.task, p.tasks)
		} else if p.tasks > 0 {
			what += fmt.Sprintf(" %d tasks", p.tasks)
		}
	} else if _, file := p.source.(*fileSource); !file && p.source != nil {
		what += " [from its agent]"
	}
	return what
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Back, ui.Filter, ui.Next, ui.Pause, ui.Errors, ui.Source, ui.Bottom, ui.Help}
}

// Command implements ui.Page.
func (p *Page) Command() string {
	if p.choice.kind == fromStep {
		return fmt.Sprintf("sattach --label %s.%d", p.id, p.choice.step)
	}
	return "tail -F " + p.path
}
