package data

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// FilterPrompt returns a prompt that edits the filter *q and calls changed after
// each change. A filter that cannot be parsed leaves the last valid one in *q.
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
