package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// Style is the escape sequences around styled text. The zero value has none.
type Style struct{ prefix, suffix string }

// newStyle extracts the escape sequences of a Lip Gloss style once, so that
// rendering a cell of a table costs two appends.
func newStyle(s lipgloss.Style) Style {
	open, shut, _ := strings.Cut(s.Inline(true).Render("x"), "x")
	return Style{open, shut}
}

// Render returns text in the style. The text must have no line breaks.
func (s Style) Render(text string) string {
	if s.prefix == "" || text == "" {
		return text
	}
	return s.prefix + text + s.suffix
}

// Theme is a set of styles. Whatever a color expresses, a character or an attribute
// expresses too, so the screen can be read without colors.
type Theme struct {
	Name string

	Title, Header, Dim, Key, Strong  Style
	Selected, Marked                 Style
	Good, Busy, Waiting, Bad, Notice Style
}

// State returns the style of a job's or a node's state.
func (t *Theme) State(state string) Style {
	switch strings.TrimRight(strings.ToUpper(state), "*+-$~#!%@^") {
	case "RUNNING", "COMPLETED", "IDLE":
		return t.Good
	case "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "MIXED", "MIX", "ALLOCATED", "ALLOC", "COMP":
		return t.Busy
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "PLANNED", "PLND", "RESV", "MAINT":
		return t.Waiting
	case "CANCELLED":
		return t.Dim
	}
	return t.Bad
}

// palette is a theme as the configuration has it: colors by the names of the
// styles, as #rrggbb or as a number of the terminal's palette.
type palette map[string]string

// palettes are the built-in themes. The first two are for a dark and a light
// background; the colors of "blue-orange" can be told apart with every common form
// of color blindness.
var palettes = map[string]palette{
	"dark": {
		"title": "14", "header": "12", "dim": "8", "key": "14", "good": "10", "busy": "14", "waiting": "11",
		"bad": "9", "notice": "13", "marked": "13",
	},
	"light": {
		"title": "4", "header": "4", "dim": "8", "key": "4", "good": "2", "busy": "6", "waiting": "5", "bad": "1",
		"notice": "5", "marked": "5",
	},
	"blue-orange": {
		"title": "#56b4e9", "header": "#56b4e9", "dim": "8", "key": "#56b4e9", "good": "#0072b2", "busy": "#56b4e9",
		"waiting": "#e69f00", "bad": "#d55e00", "notice": "#cc79a7", "marked": "#f0e442",
	},
	"mono": {},
}

// ThemeNames returns the names of all themes, custom ones included, in alphabetical
// order.
func ThemeNames(custom map[string]map[string]string) []string {
	names := slices.Collect(maps.Keys(palettes))
	for name := range custom {
		if palettes[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// NewTheme returns the theme of that name, a custom or a built-in one.
func NewTheme(name string, custom map[string]map[string]string) (*Theme, error) {
	p, ok := custom[name]
	if !ok {
		p, ok = palettes[name]
	}
	if !ok {
		return nil, fmt.Errorf("no theme is called %q; there are %s", name, strings.Join(ThemeNames(custom), ", "))
	}
	t := &Theme{Name: name}
	styles := t.byName()
	for key, value := range p {
		if styles[key] == nil {
			return nil, fmt.Errorf("theme %s: there is no style %q", name, key)
		}
		if _, bad := lipgloss.Color(value).(lipgloss.NoColor); bad {
			return nil, fmt.Errorf("theme %s: %s: %q is not a colour", name, key, value)
		}
	}
	for key, style := range styles {
		*style = newStyle(styleOf(key, p[key]))
	}
	return t, nil
}

// styleOf returns the style for a key of a palette: its attributes and its color.
func styleOf(key, value string) lipgloss.Style {
	s := lipgloss.NewStyle()
	switch key {
	case "title", "header", "key", "strong", "bad", "marked":
		s = s.Bold(true)
	case "selected":
		return s.Reverse(true)
	}
	if value == "" {
		return s
	}
	return s.Foreground(lipgloss.Color(value))
}

func (t *Theme) byName() map[string]*Style {
	return map[string]*Style{
		"title":    &t.Title,
		"header":   &t.Header,
		"dim":      &t.Dim,
		"key":      &t.Key,
		"strong":   &t.Strong,
		"selected": &t.Selected,
		"marked":   &t.Marked,
		"good":     &t.Good,
		"busy":     &t.Busy,
		"waiting":  &t.Waiting,
		"bad":      &t.Bad,
		"notice":   &t.Notice,
	}
}
