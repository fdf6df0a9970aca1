package queue

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/data"
)

// maxHeldRows is how many changes of rows are kept while the page is paused.
// Beyond it the watch ends, and the queue is read anew when the page goes on.
const maxBufferedRows = 50_000

// heldEvents are the events that came while the page is paused.
type bufferedEvents struct {
	batches  []data.Events
	rows     int
	overflow bool // there were too many, and the watch has ended
}

// hold keeps a batch of events until the page goes on.
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

// pause stops applying events to the page, or applies those that came since.
func (p *Page) togglePause() tea.Cmd {
	if p.paused = !p.paused; p.paused {
		return nil
	}
	held := p.pausedEvents
	p.pausedEvents = bufferedEvents{}
	if held.overflow {
		return p.Start()
	}
	var cmds []tea.Cmd
	for _, e := range held.batches {
		if e.Watch == p.watch && len(e.Events) > 0 {
			cmds = append(cmds, p.apply(e.Events))
		}
	}
	return tea.Batch(cmds...)
}
