package queue

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/data"
)

// maxBufferedRows bounds the changed rows that are buffered while the page is
// paused. Beyond it the watch ends, and the page reads the queue again when it
// resumes.
const maxBufferedRows = 50_000

// bufferedEvents are the events that arrived while the page is paused.
type bufferedEvents struct {
	batches  []data.Events
	rows     int
	overflow bool // there were more than maxBufferedRows; the watch has ended
}

// buffer stores a batch of events until the page resumes.
func (p *Page) buffer(e data.Events) tea.Cmd {
	for _, event := range e.Events {
		p.pausedEvents.rows += 1 + len(event.Items) + len(event.Gone)
	}
	if p.pausedEvents.rows > maxBufferedRows {
		p.watch.Stop()
		p.pausedEvents = bufferedEvents{overflow: true}
		return nil
	}
	p.pausedEvents.batches = append(p.pausedEvents.batches, e)
	return p.watch.Next
}

// togglePause pauses the page, or resumes it and applies the buffered events.
func (p *Page) togglePause() tea.Cmd {
	if p.paused = !p.paused; p.paused {
		return nil
	}
	buffered := p.pausedEvents
	p.pausedEvents = bufferedEvents{}
	if buffered.overflow {
		return p.Start()
	}
	var cmds []tea.Cmd
	for _, e := range buffered.batches {
		if e.Watch == p.watch && len(e.Events) > 0 {
			cmds = append(cmds, p.apply(e.Events))
		}
	}
	return tea.Batch(cmds...)
}
