package output

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
)

// taken takes in what a look has brought.
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

// instead tells whether the agent is to be asked in place of the file.
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

// add adds output to the ring.
func (p *Page) add(got *chunk) {
	at := p.env.Now()
	if got.existing {
		at = time.Time{}
	}
	for _, x := range got.parts {
		before := len(p.buffer.lines) + p.buffer.dropped
		p.buffer.add(x.task, x.text, at)
		if p.task == noTask || x.task != p.task {
			continue
		}
		for n := before; n < len(p.buffer.lines)+p.buffer.dropped; n++ {
			p.taskLines = append(p.taskLines, n)
		}
	}
	p.trim()
}

// trim leaves lines out of what is picked that the ring has dropped.
func (p *Page) trim() {
	n := 0
	for n < len(p.taskLines) && p.taskLines[n] < p.buffer.dropped {
		n++
	}
	p.taskLines = p.taskLines[n:]
}

// pick shows one task, or with noTask all.
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

func (p *Page) forget() {
	p.buffer.reset()
	p.taskLines, p.found = nil, -1
}

// ended is the end of what an agent has to tell: of the job or the step, or of
// the connection.
func (p *Page) handleEnd() tea.Cmd {
	p.finished = true
	if p.err == nil || !p.mayAttach() || len(p.buffer.lines) == 0 {
		return nil
	}
	s := p.source
	return tea.Tick(reconnectDelay, func(time.Time) tea.Msg { return reconnect{s} })
}

// lines is how many lines there are, the unfinished one included.
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

// line is the text of a line, with the task's number ahead where several are
// shown, and when it came.
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
