package queue

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// promptUpdate prompts for changes in the form of scontrol update.
func (p *Page) promptUpdate() tea.Cmd {
	if p.rejectChange() {
		return nil
	}
	targets := p.targets()
	if len(targets) == 0 {
		return p.env.Notify("There is no job to change.")
	}
	v := verb{status.OpUpdate, "change", "changed", "scontrol update"}
	label := fmt.Sprintf("change %s: ", jobCount(countJobs(targets)))
	return p.env.Post(ui.Prompt{Label: label, History: "update", OnSubmit: func(text string) tea.Cmd {
		set := map[string]string{}
		for _, word := range strings.Fields(text) {
			key, value, ok := strings.Cut(word, "=")
			if !ok || key == "" {
				return p.env.NotifyError(fmt.Errorf(
					"%q: write KEY=VALUE as for scontrol update, such as TimeLimit=2:00:00", printable.Escape(word)))
			}
			set[key] = value
		}
		if len(set) == 0 {
			return nil
		}
		ids := make([]string, len(targets))
		for i, t := range targets {
			ids[i] = t.id
		}
		c := ui.Confirm{
			Title: "Change " + jobCount(countJobs(targets)) + "?",
			Lines: append(p.describe(targets), "to:     "+printable.Escape(text)),
			OnConfirm: func() tea.Cmd {
				return p.startOperation(v, status.Operation{Verb: v.op, Entity: status.EntityJob, Jobs: ids, Set: set})
			},
		}
		if n := countJobs(targets); n > maxSingleKey || p.includesOthers(targets) {
			c.Answer = strconv.Itoa(n)
		}
		return p.env.Post(c)
	}})
}
