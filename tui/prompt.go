package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/tui/ui"
)

// prompt is a line being typed at the bottom of the screen.
type prompt struct {
	ask     ui.Ask
	line    ui.Line
	history []string
	at      int // in history; len(history): the line itself
	kept    string
}

func newPrompt(a ui.Ask, history []string) *prompt {
	p := &prompt{ask: a, history: history, at: len(history)}
	p.line.Set(a.Initial)
	return p
}

func (p *prompt) changed() {
	if p.ask.Live != nil {
		p.ask.Live(p.line.Text())
	}
}

// recall moves in the history.
func (p *prompt) recall(n int) {
	if p.at == len(p.history) {
		p.kept = p.line.Text()
	}
	p.at = max(0, min(len(p.history), p.at+n))
	if p.at == len(p.history) {
		p.line.Set(p.kept)
	} else {
		p.line.Set(p.history[p.at])
	}
	p.changed()
}

// type_ takes a key into the line.
func (m *Model) type_(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc", ui.Interrupt, "ctrl+g":
		m.prompt = nil
		if p.ask.Cancel != nil {
			p.ask.Cancel()
		}
	case "enter":
		m.prompt = nil
		text := p.line.Text()
		if p.ask.History != "" {
			if m.saved.History == nil {
				m.saved.History = map[string][]string{}
			}
			m.saved.History[p.ask.History] = remembered(m.saved.History[p.ask.History], text)
		}
		return p.ask.Done(text)
	case "up", "ctrl+p":
		p.recall(-1)
	case "down", "ctrl+n":
		p.recall(1)
	case "tab":
		if p.ask.History == "command" {
			p.line.Set(completed(p.line.Text()))
		}
	default:
		if p.line.Press(k) {
			p.changed()
		}
	}
	return nil
}
