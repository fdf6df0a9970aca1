package job

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

const (
	// podInterval is the time between two requests for pods that are starting.
	podInterval = 5 * time.Second
	// maxEvents bounds the events that are shown of one pod.
	maxEvents = 4
)

// podsLoaded carries the state of the job's pods.
type podsLoaded struct {
	page *Page
	pods *status.PodList
}

// podsPoll requests the state of the pods again.
type podsPoll struct{ page *Page }

// requestPods requests the state of the job's pods. Only the job's owner and
// operators get an answer; for others the page shows no pods.
func (p *Page) requestPods() tea.Cmd {
	if p.job == nil || !p.feed.Open() {
		return nil
	}
	env, id := p.env, p.job.ID
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		list, err := env.Cluster.Pods(ctx, id, false)
		if err != nil {
			return podsLoaded{p, nil}
		}
		return podsLoaded{p, list}
	}
}

// setPods stores the state of the pods. While they are starting, it schedules the
// next request, because a change of a pod is not a change of the job.
func (p *Page) setPods(m podsLoaded) tea.Cmd {
	p.pods = m.pods
	if m.pods == nil || p.job == nil || p.job.State != "CONFIGURING" {
		return nil
	}
	return tea.Tick(podInterval, func(time.Time) tea.Msg { return podsPoll{p} })
}

// hasProblem reports whether a pod has not started, has failed or was restarted.
func hasProblem(x *status.Pod) bool {
	return x.Phase == "Pending" || x.Phase == "Failed" || x.Reason != "" || x.Restarts > 0
}

// podText writes the state of the job's pods.
func (p *Page) podText(s *textBuilder) {
	if p.pods == nil || p.pods.Count == 0 {
		return
	}
	var bad []*status.Pod
	for i := range p.pods.Items {
		if x := &p.pods.Items[i]; hasProblem(x) {
			bad = append(bad, x)
		}
	}
	switch {
	case p.job.State == "CONFIGURING" || p.job.State == "PENDING":
		s.heading("Pods of the job, which is starting")
	case len(bad) == 0:
		return
	default:
		s.heading("Pods with problems")
	}
	if p.pods.Count == 1 && len(bad) == 0 {
		s.paragraph(ui.Style{}, "The pod exists; its agent has not reported yet.")
	} else if p.pods.Count > 1 {
		s.paragraph(ui.Style{}, fmt.Sprintf("%d of %d pods have no problem.", p.pods.Count-len(bad), p.pods.Count))
	}
	for _, x := range bad {
		p.onePodText(s, x)
	}
}

// onePodText writes the state of a pod that has a problem, and its last events.
func (p *Page) onePodText(s *textBuilder, x *status.Pod) {
	text := x.Name
	if x.Node != "" {
		text += " on " + x.Node
	}
	text += ": " + x.Phase
	if x.Reason != "" {
		text += ", " + x.Reason
	}
	if x.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d times", x.Restarts)
	}
	style := ui.Style{}
	if x.Reason != "" {
		style = p.env.Bad
		text = "! " + text
	}
	s.paragraph(style, text)
	if x.Message != "" {
		s.paragraph(ui.Style{}, "  "+x.Message)
	}
	set := p.env.Format
	for _, e := range x.Events[max(0, len(x.Events)-maxEvents):] {
		count := ""
		if e.Count > 1 {
			count = fmt.Sprintf(" (%d times)", e.Count)
		}
		s.paragraph(p.env.Dim, fmt.Sprintf("  %s %s%s: %s",
			format.AppendInstant(nil, e.Time, "", &set), e.Reason, count, strings.TrimSpace(e.Message)))
	}
}
