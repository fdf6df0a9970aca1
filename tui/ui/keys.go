package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// Action is what a key does. Its value is its name in the configuration.
type Action string

// The actions.
const (
	Up       Action = "up"
	Down     Action = "down"
	PageUp   Action = "page-up"
	PageDown Action = "page-down"
	HalfUp   Action = "half-up"
	HalfDown Action = "half-down"
	Top      Action = "top"
	Bottom   Action = "bottom"
	Left     Action = "left"
	Right    Action = "right"

	Open    Action = "open"
	Back    Action = "back"
	Quit    Action = "quit"
	Help    Action = "help"
	Command Action = "command"
	Filter  Action = "filter"
	Saved   Action = "saved-filter"
	Clear   Action = "clear"
	Next    Action = "next-match"
	Prev    Action = "previous-match"

	Sort         Action = "sort"
	SortPrevious Action = "sort-previous"
	Reverse      Action = "reverse"
	Columns      Action = "columns"
	Expand       Action = "expand"
	All          Action = "all-states"

	Mark      Action = "mark"
	MarkRange Action = "mark-range"
	MarkAll   Action = "mark-all"
	Bell      Action = "bell"

	Cancel  Action = "cancel"
	Hold    Action = "hold"
	Release Action = "release"
	Requeue Action = "requeue"
	Suspend Action = "suspend"
	Resume  Action = "resume"
	Update  Action = "update"
	Undo    Action = "undo"
	Shell   Action = "shell"

	Copy        Action = "copy"
	CopyRow     Action = "copy-row"
	ShowCommand Action = "show-command"

	Output Action = "output"
	Errors Action = "errors"
	Pause  Action = "pause"
	Stamps Action = "timestamps"
	Source Action = "source"

	ZoomIn    Action = "zoom-in"
	ZoomOut   Action = "zoom-out"
	Group     Action = "group"
	NextTheme Action = "theme"
	Mouse     Action = "mouse"

	PageQueue    Action = "queue"
	PageNodes    Action = "nodes"
	PageHistory  Action = "history"
	PageJob      Action = "job"
	PageOutput   Action = "job-output"
	PageHelp     Action = "help-page"
	PageTimeline Action = "timeline"
)

// Interrupt is the key that leaves the program from every page and cancels every
// prompt. The other keys of Quit return to the previous page first.
const Interrupt = "ctrl+c"

// Entry is an action with its default keys.
type Entry struct {
	Action Action
	Keys   []string
	Help   string // description for the help page
	Hint   string // name in the line of hints; empty: it is not shown there
}

// Section is a group of entries on the help page.
type Section struct {
	Title   string
	Entries []Entry
}

// Sections are all actions, as the help page groups them.
var Sections = []Section{
	{"Pages", []Entry{
		{PageQueue, []string{"1"}, "the queue", "queue"},
		{PageNodes, []string{"2"}, "the nodes, or those of the job", "nodes"},
		{PageHistory, []string{"3"}, "jobs that have ended, from accounting", "history"},
		{PageJob, []string{"4"}, "everything about the job", "job"},
		{PageOutput, []string{"5"}, "the job's output", "output"},
		{PageHelp, []string{"6"}, "this page", "help"},
		{PageTimeline, []string{"7", "t"}, "running and planned jobs over time", "timeline"},
		{Open, []string{"enter"}, "open what the cursor is on", "open"},
		{Back, []string{"esc", "backspace"}, "close what is open, then return to the previous page", "back"},
		{Command, []string{":"}, "type a command, such as :job 12 or :nodes", "command"},
		{Help, []string{"?", "f1"}, "this page", "help"},
		{Quit, []string{"q", Interrupt}, "quit; q first returns to the previous page", "quit"},
	}},
	{"Moving", []Entry{
		{Up, []string{"up", "k"}, "up", ""},
		{Down, []string{"down", "j"}, "down", ""},
		{PageUp, []string{"pgup", "ctrl+b"}, "a page up", ""},
		{PageDown, []string{"pgdown", "ctrl+f"}, "a page down", ""},
		{HalfUp, []string{"ctrl+u"}, "half a page up", ""},
		{HalfDown, []string{"ctrl+d"}, "half a page down", ""},
		{Top, []string{"home", "g"}, "to the first", ""},
		{Bottom, []string{"end", "G"}, "to the last", ""},
		{Left, []string{"left"}, "columns or text to the left", ""},
		{Right, []string{"right"}, "columns or text to the right", ""},
	}},
	{"Viewing", []Entry{
		{Filter, []string{"/"}, "filter as you type; search in output", "filter"},
		{Saved, []string{"F"}, "choose a saved filter", "saved"},
		{Clear, []string{"ctrl+l"}, "clear the filter", "clear"},
		{Next, []string{"n"}, "next match in output", "next"},
		{Prev, []string{"N"}, "previous match in output", ""},
		{Sort, []string{"s", ">"}, "sort by the next column", "sort"},
		{SortPrevious, []string{"<"}, "sort by the previous column", ""},
		{Reverse, []string{"r"}, "reverse the order", ""},
		{Columns, []string{"c"}, "choose the columns", "columns"},
		{Expand, []string{"tab"}, "expand or collapse an array", "expand"},
		{All, []string{"a"}, "also show jobs that have ended", "all"},
		{ZoomIn, []string{"+", "="}, "a shorter period", "zoom"},
		{ZoomOut, []string{"-"}, "a longer period", ""},
		{Group, []string{"w"}, "timeline: by job or by node; output: wrap lines", "by node"},
		{Pause, []string{"p"}, "pause or resume", "pause"},
		{Stamps, []string{"T"}, "output: show when lines arrived", ""},
		{Source, []string{"i"}, "output: choose the file, the agent, a step or a task", "source"},
		{NextTheme, []string{"ctrl+t"}, "the next theme", ""},
		{Mouse, []string{"M"}, "use the mouse here, or in the terminal", ""},
	}},
	{"Marking", []Entry{
		{Mark, []string{"space"}, "mark or unmark the job", "mark"},
		{MarkRange, []string{"v"}, "mark from the last mark to here", ""},
		{MarkAll, []string{"ctrl+a"}, "mark all that the filter shows, or none", ""},
		{Bell, []string{"b"}, "ring the bell when the marked jobs end", "bell"},
	}},
	{"Operations (on the marked jobs, else on the one under the cursor)", []Entry{
		{Cancel, []string{"x", "delete"}, "cancel", "cancel"},
		{Hold, []string{"h"}, "hold", "hold"},
		{Release, []string{"H"}, "release", "release"},
		{Requeue, []string{"Q"}, "requeue", ""},
		{Suspend, []string{"z"}, "suspend", ""},
		{Resume, []string{"Z"}, "resume", ""},
		{Update, []string{"e"}, "change: TimeLimit=2:00:00", "change"},
		{Undo, []string{"U"}, "undo the last hold or release", ""},
		{Output, []string{"o"}, "show its output", "output"},
		{Errors, []string{"O"}, "show its standard error", ""},
		{Shell, []string{"!"}, "a shell on its first node (srun --pty)", ""},
		{Copy, []string{"y"}, "copy the id", "copy"},
		{CopyRow, []string{"Y"}, "copy the row", ""},
		{ShowCommand, []string{"K"}, "show and copy the command that does the same", "command line"},
	}},
}

// Keymap maps keys to actions. It is made once and never changed.
type Keymap struct {
	bindings []binding // in the order of Sections
}

// binding is an action with its keys.
type binding struct {
	action Action
	key.Binding
}

// NewKeymap returns the default key map with the user's changes: custom holds
// keys by the names of actions. Entries of custom that cannot be used are
// ignored, and the error lists them.
func NewKeymap(custom map[string][]string) (*Keymap, error) {
	owners := map[string]Action{} // of the keys in custom
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		if !isAction(name) {
			problems = append(problems, fmt.Sprintf("there is no action %q", name))
			continue
		}
		for _, k := range custom[name] {
			if other, taken := owners[k]; taken {
				problems = append(problems, fmt.Sprintf("%q is given to %s and %s", k, other, name))
				continue
			}
			owners[k] = Action(name)
		}
	}
	m := newKeymap(custom, owners)
	if len(m.binding(Quit).Keys()) == 0 {
		problems = append(problems, "no key is left for quit, so ctrl+c stays")
		custom = maps.Clone(custom)
		custom[string(Quit)] = []string{Interrupt}
		owners[Interrupt] = Quit
		m = newKeymap(custom, owners)
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return m, fmt.Errorf("key map: %s", strings.Join(problems, "; "))
	}
	return m, nil
}

func isAction(name string) bool {
	return slices.ContainsFunc(Sections, func(s Section) bool {
		return slices.ContainsFunc(s.Entries, func(e Entry) bool { return string(e.Action) == name })
	})
}

// newKeymap binds each action to its keys in custom, or else to its default
// keys; a key that owners gives to another action is left out.
func newKeymap(custom map[string][]string, owners map[string]Action) *Keymap {
	m := &Keymap{}
	for _, s := range Sections {
		for _, e := range s.Entries {
			keys, ok := custom[string(e.Action)]
			if !ok {
				keys = e.Keys
			}
			m.bindings = append(m.bindings, newBinding(e, keys, owners))
		}
	}
	return m
}

func newBinding(e Entry, keys []string, owners map[string]Action) binding {
	var bound, shown []string
	for _, k := range keys {
		if owner, ok := owners[k]; !ok || owner == e.Action {
			bound = append(bound, k)
			shown = append(shown, keyName(k))
		}
	}
	return binding{e.Action, key.NewBinding(key.WithKeys(bound...), key.WithHelp(strings.Join(shown, " "), e.Help))}
}

// binding returns the keys of an action.
func (m *Keymap) binding(a Action) key.Binding {
	for i := range m.bindings {
		if m.bindings[i].action == a {
			return m.bindings[i].Binding
		}
	}
	return key.Binding{}
}

// keyName returns the name of a key as the screen shows it.
func keyName(k string) string {
	if rest, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return "^" + strings.ToUpper(rest)
	}
	switch k {
	case "pgup":
		return "PgUp"
	case "pgdown":
		return "PgDn"
	case "enter", "esc", "tab", "space", "home", "end", "delete", "backspace", "up", "down", "left", "right", "f1":
		return strings.ToUpper(k[:1]) + k[1:]
	}
	return k
}

// Action returns the action of a key, empty if it has none.
func (m *Keymap) Action(k tea.KeyPressMsg) Action {
	for i := range m.bindings {
		if key.Matches(k, m.bindings[i].Binding) {
			return m.bindings[i].action
		}
	}
	return ""
}

// Help returns the keys of an action as the screen shows them ("x Delete"), and
// its description.
func (m *Keymap) Help(a Action) key.Help { return m.binding(a).Help() }

// Key returns the first key of an action as the screen shows it.
func (m *Keymap) Key(a Action) string {
	first, _, _ := strings.Cut(m.Help(a).Key, " ")
	return first
}

// Hint returns the name of an action for the line of hints, empty if it has none.
func Hint(a Action) string {
	for _, s := range Sections {
		for _, e := range s.Entries {
			if e.Action == a {
				return e.Hint
			}
		}
	}
	return ""
}
