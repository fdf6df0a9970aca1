package ui

import "strings"

// Glyphs are the characters that screens are drawn with.
type Glyphs struct {
	Ellipsis     string // where text was cut off
	Rule         string // a horizontal line
	Up, Down     string // the direction of an order
	Used, Unused string // used and unused parts of a bar
	Planned      string // a planned stretch of time
	Levels       []string
	Cursor       string
	Mark         string
	Expanded     string // an expanded group
	Collapsed    string // a collapsed one
}

// Unicode and ASCII are the two sets of characters.
var (
	Unicode = Glyphs{Ellipsis: "…", Rule: "─", Up: "▲", Down: "▼", Used: "█", Unused: "░", Planned: "▒",
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Cursor: "›", Mark: "●", Expanded: "▾", Collapsed: "▸"}
	ASCII = Glyphs{Ellipsis: "~", Rule: "-", Up: "^", Down: "v", Used: "#", Unused: ".", Planned: "=",
		Levels: []string{"_", ".", "-", "=", "+", "*", "%", "#"}, Cursor: ">", Mark: "*", Expanded: "-", Collapsed: "+"}
)

// UTF8 reports whether the locale of the environment uses UTF-8, as setlocale(3)
// determines it.
func UTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Meter returns a bar of width cells of which part/whole is used.
func (g *Glyphs) Meter(part, whole int64, width int) string {
	if whole <= 0 || width <= 0 {
		return strings.Repeat(g.Unused, max(0, width))
	}
	n := int(min(int64(width), max(0, (part*int64(width)+whole/2)/whole)))
	return strings.Repeat(g.Used, n) + strings.Repeat(g.Unused, width-n)
}

// Spark returns a bar chart of the last width values, one cell for each. Values
// are between 0 and 1.
func (g *Glyphs) Spark(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	for _, v := range values {
		i := int(v * float64(len(g.Levels)))
		b.WriteString(g.Levels[min(len(g.Levels)-1, max(0, i))])
	}
	return b.String()
}
