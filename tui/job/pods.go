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
	// podPause is the time between two looks at pods that have yet to start.
	podPause = 5 * time.Second
	// eventLines are shown of one pod.
	eventLines = 4
)

// podsTold is how a job's pods are.
type podsTold struct {
	page *Page
	pods *status.PodList
}

type podsAgain struct{ page *Page }

// askPods asks how the job's pods are. Others than the job's owner and
// operators are not told, and see nothing of them.
func (p *Page) askPods() tea.Cmd {
	if p.job == nil || !p.feed.Open() {
		return nil
	}
	env, id := p.env, p.job.ID
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		list, err := env.Cluster.Pods(ctx, id, false)
		if err != nil {
			return podsTold{p, nil}
		}
		return podsTold{p, list}
	}
}

// tellPods takes an answer in. Pods that have yet to start are looked at again:
// what happens to them is no change of the job.
func (p *Page) tellPods(m podsTold) tea.Cmd {
	p.pods = m.pods
	if m.pods == nil || p.job == nil || p.job.State != "CONFIGURING" {
		return nil
	}
	return tea.Tick(podPause, func(time.Time) tea.Msg { return podsAgain{p} })
}

// inTrouble tells whether there is something to say about a pod.
func inTrouble(x *status.Pod) bool {
	return x.Phase == "Pending" || x.Phase == "Failed" || x.Reason != "" || x.Restarts > 0
}

// podText is what is said about the job's pods.
func (p *Page) podText(s *sheet) {
	if p.pods == nil || p.pods.Count == 0 {
		return
	}
	var bad []*status.Pod
	for i := range p.pods.Items {
		if x := &p.pods.Items[i]; inTrouble(x) {
			bad = append(bad, x)
		}
	}
	switch {
	case p.job.State == "CONFIGURING" || p.job.State == "PENDING":
		s.head("Its pods, before it starts")
	case len(bad) == 0:
		return
	default:
		s.head("Its pods")
	}
	if p.pods.Count == 1 && len(bad) == 0 {
		s.say(ui.Style{}, "The pod is there; its agent has not reported yet.")
	} else if p.pods.Count > 1 {
		s.say(ui.Style{}, fmt.Sprintf("%d of %d pods are in order.", p.pods.Count-len(bad), p.pods.Count))
	}
	for _, x := range bad {
		p.onePod(s, x)
	}
}

func (p *Page) onePod(s *sheet, x *status.Pod) {
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
	s.say(style, text)
	if x.Message != "" {
		s.say(ui.Style{}, "  "+x.Message)
	}
	set := p.env.Format
	for _, e := range x.Events[max(0, len(x.Events)-eventLines):] {
		count := ""
		if e.Count > 1 {
			count = fmt.Sprintf(" (%d times)", e.Count)
		}
		s.say(p.env.Dim, fmt.Sprintf("  %s %s%s: %s", format.AppendInstant(nil, e.Time, "", &set), e.Reason, count, strings.TrimSpace(e.Message)))
	}
}
