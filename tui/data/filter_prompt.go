package data

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// AskFilter has a filter typed into *q; changed is told after each key. A
// filter that is wrong leaves the last good one.
func FilterPrompt(env *Env, history string, q **query.Query, changed func()) ui.Prompt {
	before := *q
	put := func(text string) error {
		parsed, err := query.Parse(text)
		if err == nil {
			*q = parsed
			changed()
		}
		return err
	}
	back := func() { *q = before; changed() }
	return ui.Prompt{
		Label: "/", Initial: before.Text(), History: history,
		OnChange: func(text string) { _ = put(text) },
		OnCancel: back,
		OnSubmit: func(text string) tea.Cmd {
			if err := put(text); err != nil {
				back()
				return env.NotifyError(err)
			}
			return nil
		},
	}
}
