package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/ui"
)

// prompt is a line that is being typed at the bottom of the screen.
type prompt struct {
	request      ui.Prompt
	line         ui.TextInput
	history      []string
	historyIndex int // in history; len(history): the line itself
	draft        string
}

func newPrompt(a ui.Prompt, history []string) *prompt {
	p := &prompt{request: a, history: history, historyIndex: len(history)}
	p.line.Set(a.Initial)
	return p
}

// changed calls OnChange with the line as it is now.
func (p *prompt) changed() {
	if p.request.OnChange != nil {
		p.request.OnChange(p.line.Text())
	}
}

// recall moves by n lines in the history. The line that is being typed is the
// one after the newest, and stays as it was.
func (p *prompt) recall(n int) {
	if p.historyIndex == len(p.history) {
		p.draft = p.line.Text()
	}
	p.historyIndex = max(0, min(len(p.history), p.historyIndex+n))
	if p.historyIndex == len(p.history) {
		p.line.Set(p.draft)
	} else {
		p.line.Set(p.history[p.historyIndex])
	}
	p.changed()
}

// handlePromptKey edits, submits or cancels the line that is being typed.
func (m *Model) handlePromptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc", ui.Interrupt, "ctrl+g":
		m.prompt = nil
		if p.request.OnCancel != nil {
			p.request.OnCancel()
		}
	case "enter":
		m.prompt = nil
		text := p.line.Text()
		if p.request.History != "" {
			if m.state.History == nil {
				m.state.History = map[string][]string{}
			}
			m.state.History[p.request.History] = appendHistory(m.state.History[p.request.History], text)
		}
		return p.request.OnSubmit(text)
	case "up", "ctrl+p":
		p.recall(-1)
	case "down", "ctrl+n":
		p.recall(1)
	case "tab":
		if p.request.History == "command" {
			p.line.Set(completeCommand(p.line.Text()))
		}
	default:
		if p.line.Press(k) {
			p.changed()
		}
	}
	return nil
}
