package output

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
)

// handleChunk adds what a source has read, and schedules the next read.
func (p *Page) handleChunk(got chunk) tea.Cmd {
	if p.fallBackToAgent(got) {
		return p.readFrom(newScriptSource(p.env, p.job.ID, p.stream))
	}
	if got.reset {
		p.forget()
		p.buffer.cut, p.tasks = got.truncated, got.tasks
	}
	if got.path != "" {
		p.path = got.path
	}
	if p.err = got.err; got.err == nil {
		p.add(&got)
	}
	switch {
	case got.finished:
		return p.handleEnd()
	case !got.caughtUp:
		return p.read()
	}
	s := p.source
	return tea.Tick(pollInterval, func(time.Time) tea.Msg { return poll{s} })
}

// fallBackToAgent reports whether the agent is to replace the file as the source:
// the file cannot be read or is older than the job, and the user chose no source.
func (p *Page) fallBackToAgent(got chunk) bool {
	if _, file := p.source.(*fileSource); !file || p.choice.kind != fromAny || !p.mayAttach() {
		return false
	}
	switch {
	case got.err != nil:
		p.fileError = got.err
	case got.older:
		p.fileError = errors.New("the file of that name here is older than the job")
	default:
		return false
	}
	return true
}

// add adds output to the buffer.
func (p *Page) add(got *chunk) {
	at := p.env.Now()
	if got.existing {
		at = time.Time{}
	}
	for _, x := range got.parts {
		before := p.buffer.received()
		p.buffer.add(x.task, x.text, at)
		if p.task == noTask || x.task != p.task {
			continue
		}
		for n := before; n < p.buffer.received(); n++ {
			p.taskLines = append(p.taskLines, n)
		}
	}
	p.trim()
}

// trim removes lines from taskLines that the buffer has dropped.
func (p *Page) trim() {
	n := 0
	for n < len(p.taskLines) && p.taskLines[n] < p.buffer.dropped {
		n++
	}
	p.taskLines = p.taskLines[n:]
}

// showTask shows the lines of one task, or with noTask those of all tasks.
func (p *Page) showTask(task int32) {
	p.task, p.taskLines, p.follow, p.found = task, nil, true, -1
	if task == noTask {
		return
	}
	for i := range p.buffer.lines {
		if p.buffer.lines[i].task == task {
			p.taskLines = append(p.taskLines, i+p.buffer.dropped)
		}
	}
}

// forget removes all lines.
func (p *Page) forget() {
	p.buffer.reset()
	p.taskLines, p.found = nil, -1
}

// handleEnd handles the end of an agent's output: the job or step has ended, or the
// connection broke, in which case it schedules a new one.
func (p *Page) handleEnd() tea.Cmd {
	p.finished = true
	if p.err == nil || !p.mayAttach() || len(p.buffer.lines) == 0 {
		return nil
	}
	s := p.source
	return tea.Tick(reconnectDelay, func(time.Time) tea.Msg { return reconnect{s} })
}

// lineCount returns the number of lines to show, the unfinished one included.
func (p *Page) lineCount() int {
	if p.task != noTask {
		return len(p.taskLines)
	}
	n := len(p.buffer.lines)
	if len(p.buffer.open[noTask]) > 0 {
		n++
	}
	return n
}

// line returns the text of a line and when it arrived. The number of the task is in
// front if several tasks are shown.
func (p *Page) line(i int) (string, time.Time) {
	switch {
	case p.task != noTask:
		l := &p.buffer.lines[p.taskLines[i]-p.buffer.dropped]
		return cleanLine(l.text), l.at
	case i < len(p.buffer.lines):
		l := &p.buffer.lines[i]
		if l.task == noTask {
			return cleanLine(l.text), l.at
		}
		return fmt.Sprintf("%*d: %s", len(strconv.Itoa(int(p.tasks)-1)), l.task, cleanLine(l.text)), l.at
	}
	return cleanLine(string(p.buffer.open[noTask])), time.Time{}
}
