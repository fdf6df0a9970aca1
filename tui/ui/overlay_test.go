package ui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// allViews presses the keys and returns everything that an overlay of that size
// shows before, between and after them.
func allViews(o Overlay, width, height int, keys ...tea.KeyPressMsg) string {
	l := &Appearance{Theme: &Theme{}}
	m, _ := NewKeymap(nil)
	all := strings.Join(o.View(l, width, height), "\n")
	for _, k := range keys {
		o.Press(k, m.Action(k))
		all += "\n" + strings.Join(o.View(l, width, height), "\n")
	}
	return all
}

// A panel scrolls to its end even if its lines are wrapped.
func TestPanelOfLongLinesScrollsToItsEnd(t *testing.T) {
	line := strings.Repeat("word ", 100) + "END"
	for _, k := range []tea.KeyPressMsg{{Code: tea.KeyEnd}, {Code: 'G', Text: "G"}} {
		if all := allViews(NewPanel(Panel{Title: "t", Lines: []string{line}}), 20, 6, k); !strings.Contains(
			all,
			"END",
		) {
			t.Errorf("%s does not reach the end:\n%s", k, all)
		}
	}
}

// A confirmation shows every job that it is about: all at once if they fit, else
// page by page.
func TestConfirmationShowsEveryJob(t *testing.T) {
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprint(100001 + i)
	}
	var pages []tea.KeyPressMsg
	for range 40 {
		pages = append(pages, tea.KeyPressMsg{Code: tea.KeyPgDown})
	}
	for _, height := range []int{8, 20, 60} {
		for _, word := range []string{"", "200"} {
			c := NewConfirm(
				Confirm{
					Title:     "Cancel 200 jobs?",
					Lines:     []string{"jobs: " + strings.Join(ids, " "), "of: anna 200"},
					Answer:    word,
					OnConfirm: func() tea.Cmd { t.Error("it was confirmed"); return nil },
				},
			)
			all := allViews(c, 60, height, pages...)
			for _, want := range append(ids, "of: anna 200") {
				if !strings.Contains(all, want) {
					t.Errorf("height %d: %s is not shown", height, want)
					break
				}
			}
			if lines := c.View(&Appearance{Theme: &Theme{}}, 60, height); len(lines) > height ||
				!strings.Contains(lines[len(lines)-1], map[bool]string{true: "y: yes", false: "Type 200"}[word == ""]) {
				t.Errorf("height %d: the question is not the last line of %q", height, lines)
			}
		}
	}
}
