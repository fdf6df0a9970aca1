package data

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// AskFilter has a filter typed into *q; changed is told after each key. A
// filter that is wrong leaves the last good one.
func AskFilter(env *Env, history string, q **query.Query, changed func()) ui.Ask {
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
	return ui.Ask{
		Label: "/", Initial: before.Text(), History: history,
		Live:   func(text string) { _ = put(text) },
		Cancel: back,
		Done: func(text string) tea.Cmd {
			if err := put(text); err != nil {
				back()
				return env.Complain(err)
			}
			return nil
		},
	}
}
