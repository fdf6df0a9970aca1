package ui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// Action is what a key does, by the name that the key map uses.
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

// Interrupt is the key that leaves the program from any page, and gives up
// whatever is open. The other keys of Quit go back to the page before first.
const Interrupt = "ctrl+c"

// Entry is an action with its keys as they come with the program.
type Entry struct {
	Action Action
	Keys   []string
	Help   string // what it does, for the help page
	Hint   string // for the line of hints
}

// Section is a group of entries on the help page.
type Section struct {
	Title   string
	Entries []Entry
}

// Sections are all actions there are.
var Sections = []Section{
	{"Pages", []Entry{
		{PageQueue, []string{"1"}, "the queue", "queue"},
		{PageNodes, []string{"2"}, "the nodes, or those of the job", "nodes"},
		{PageHistory, []string{"3"}, "jobs that are over, from accounting", "history"},
		{PageJob, []string{"4"}, "everything about the job", "job"},
		{PageOutput, []string{"5"}, "the job's output", "output"},
		{PageHelp, []string{"6"}, "this page", "help"},
		{PageTimeline, []string{"7", "t"}, "what runs and what is planned, over time", "timeline"},
		{Open, []string{"enter"}, "open what the cursor is on", "open"},
		{Back, []string{"esc", "backspace"}, "back; closes what is open, then goes to the page before", "back"},
		{Command, []string{":"}, "type a command, such as :job 12 or :nodes", "command"},
		{Help, []string{"?", "f1"}, "this page", "help"},
		{Quit, []string{"q", Interrupt}, "leave", "quit"},
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
	{"Looking", []Entry{
		{Filter, []string{"/"}, "filter as you type; search in output", "filter"},
		{Saved, []string{"F"}, "choose a saved filter", "saved"},
		{Clear, []string{"ctrl+l"}, "take the filter off", "clear"},
		{Next, []string{"n"}, "next match in output", "next"},
		{Prev, []string{"N"}, "previous match in output", ""},
		{Sort, []string{"s", ">"}, "order by the next column", "sort"},
		{SortPrevious, []string{"<"}, "order by the column before", ""},
		{Reverse, []string{"r"}, "turn the order round", ""},
		{Columns, []string{"c"}, "choose the columns", "columns"},
		{Expand, []string{"tab"}, "show or fold the tasks of an array", "fold"},
		{All, []string{"a"}, "also jobs that are over", "all"},
		{ZoomIn, []string{"+", "="}, "a shorter stretch of time", "zoom"},
		{ZoomOut, []string{"-"}, "a longer stretch of time", ""},
		{Group, []string{"w"}, "timeline: by job or by node; output: wrap lines", "by node"},
		{Pause, []string{"p"}, "stop and go on following", "pause"},
		{Stamps, []string{"T"}, "output: when lines came", ""},
		{Source, []string{"i"}, "output: where it comes from, and of which task", "source"},
		{NextTheme, []string{"ctrl+t"}, "the next theme", ""},
		{Mouse, []string{"M"}, "give the mouse back to the terminal, or take it", ""},
	}},
	{"Marking", []Entry{
		{Mark, []string{"space"}, "mark the job, or take the mark off", "mark"},
		{MarkRange, []string{"v"}, "mark from the last mark to here", ""},
		{MarkAll, []string{"ctrl+a"}, "mark all that the filter shows, or none", ""},
		{Bell, []string{"b"}, "ring when the marked jobs are over", "bell"},
	}},
	{"Doing (with the marked jobs, else with the one under the cursor)", []Entry{
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
		{Shell, []string{"!"}, "a shell where it runs (srun --pty)", ""},
		{Copy, []string{"y"}, "copy the id", "copy"},
		{CopyRow, []string{"Y"}, "copy the row", ""},
		{ShowCommand, []string{"K"}, "show and copy the command that does the same", "command line"},
	}},
}

// Keymap says what keys do. It is made once and never changed.
type Keymap struct {
	actions  map[string]Action
	bindings map[Action]key.Binding
}

// NewKeymap makes the key map that comes with the program, changed by own:
// keys by the names of actions. What own says wrongly is left as it was; the
// error tells of it.
func NewKeymap(own map[string][]string) (*Keymap, error) {
	m := &Keymap{actions: map[string]Action{}, bindings: map[Action]key.Binding{}}
	var wrong []string
	given := map[string]Action{}
	for name, keys := range own {
		if !slices.ContainsFunc(Sections, func(s Section) bool {
			return slices.ContainsFunc(s.Entries, func(e Entry) bool { return string(e.Action) == name })
		}) {
			wrong = append(wrong, fmt.Sprintf("there is no action %q", name))
			continue
		}
		for _, k := range keys {
			if other, taken := given[k]; taken {
				wrong = append(wrong, fmt.Sprintf("%q is given to %s and %s", k, other, name))
			}
			given[k] = Action(name)
		}
	}
	for _, s := range Sections {
		for _, e := range s.Entries {
			m.bind(e, own, given)
		}
	}
	if !slices.ContainsFunc(m.bindings[Quit].Keys(), func(k string) bool { return m.actions[k] == Quit }) {
		m.actions[Interrupt] = Quit
		wrong = append(wrong, "no key is left for quit, so ctrl+c stays")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return m, fmt.Errorf("key map: %s", strings.Join(wrong, "; "))
	}
	return m, nil
}

// bind gives an action its own keys, or those that come with the program and
// that no other action took.
func (m *Keymap) bind(e Entry, own map[string][]string, given map[string]Action) {
	keys, chosen := own[string(e.Action)]
	if !chosen {
		for _, k := range e.Keys {
			if _, taken := given[k]; !taken {
				keys = append(keys, k)
			}
		}
	}
	shown := make([]string, len(keys))
	for i, k := range keys {
		if other, taken := given[k]; !taken || other == e.Action {
			m.actions[k] = e.Action
		}
		shown[i] = keyName(k)
	}
	m.bindings[e.Action] = key.NewBinding(key.WithKeys(keys...), key.WithHelp(strings.Join(shown, " "), e.Help))
}

// keyName is how a key is written on the screen.
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

// Action is what the key does, empty if nothing.
func (m *Keymap) Action(k tea.KeyPressMsg) Action { return m.actions[k.String()] }

// Keys are the keys of an action as they are shown: "x Delete".
func (m *Keymap) Keys(a Action) string { return m.bindings[a].Help().Key }

// Key is the first key of an action as it is shown.
func (m *Keymap) Key(a Action) string {
	first, _, _ := strings.Cut(m.Keys(a), " ")
	return first
}

// Short is what an action is called in the line of hints.
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
