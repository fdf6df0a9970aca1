package output

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
)

// taken takes in what a look has brought.
func (p *Page) taken(got piece) tea.Cmd {
	if p.instead(got) {
		return p.from(script(p.env, p.job.ID, p.errors))
	}
	if got.fresh {
		p.forget()
		p.ring.cut, p.tasks = got.late, got.tasks
	}
	if got.path != "" {
		p.path = got.path
	}
	if p.err = got.err; got.err == nil {
		p.add(&got)
	}
	switch {
	case got.over:
		return p.ended()
	case !got.wait:
		return p.look()
	}
	s := p.source
	return tea.Tick(pause, func(time.Time) tea.Msg { return again{s} })
}

// instead tells whether the agent is to be asked in place of the file.
func (p *Page) instead(got piece) bool {
	if _, file := p.source.(*tail); !file || p.choice.kind != fromAny || !p.canAsk() {
		return false
	}
	switch {
	case got.err != nil:
		p.away = got.err
	case got.others:
		p.away = errors.New("the file of that name here is older than the job")
	default:
		return false
	}
	return true
}

// add adds output to the ring.
func (p *Page) add(got *piece) {
	at := p.env.Now()
	if got.first {
		at = time.Time{}
	}
	for _, x := range got.parts {
		before := len(p.ring.lines) + p.ring.dropped
		p.ring.add(x.task, x.text, at)
		if p.only == noTask || x.task != p.only {
			continue
		}
		for n := before; n < len(p.ring.lines)+p.ring.dropped; n++ {
			p.picked = append(p.picked, n)
		}
	}
	p.trim()
}

// trim leaves lines out of what is picked that the ring has dropped.
func (p *Page) trim() {
	n := 0
	for n < len(p.picked) && p.picked[n] < p.ring.dropped {
		n++
	}
	p.picked = p.picked[n:]
}

// pick shows one task, or with noTask all.
func (p *Page) pick(task int32) {
	p.only, p.picked, p.follow, p.found = task, nil, true, -1
	if task == noTask {
		return
	}
	for i := range p.ring.lines {
		if p.ring.lines[i].task == task {
			p.picked = append(p.picked, i+p.ring.dropped)
		}
	}
}

func (p *Page) forget() {
	p.ring.reset()
	p.picked, p.found = nil, -1
}

// ended is the end of what an agent has to tell: of the job or the step, or of
// the connection.
func (p *Page) ended() tea.Cmd {
	p.over = true
	if p.err == nil || !p.canAsk() || len(p.ring.lines) == 0 {
		return nil
	}
	s := p.source
	return tea.Tick(reunite, func(time.Time) tea.Msg { return lost{s} })
}

// lines is how many lines there are, the unfinished one included.
func (p *Page) lines() int {
	if p.only != noTask {
		return len(p.picked)
	}
	n := len(p.ring.lines)
	if len(p.ring.open[noTask]) > 0 {
		n++
	}
	return n
}

// line is the text of a line, with the task's number ahead where several are
// shown, and when it came.
func (p *Page) line(i int) (string, time.Time) {
	switch {
	case p.only != noTask:
		l := &p.ring.lines[p.picked[i]-p.ring.dropped]
		return clean(l.text), l.at
	case i < len(p.ring.lines):
		l := &p.ring.lines[i]
		if l.task == noTask {
			return clean(l.text), l.at
		}
		return fmt.Sprintf("%*d: %s", len(strconv.Itoa(int(p.tasks)-1)), l.task, clean(l.text)), l.at
	}
	return clean(string(p.ring.open[noTask])), time.Time{}
}
