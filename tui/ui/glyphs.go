package ui

import "strings"

// Glyphs are the characters that screens are drawn with.
type Glyphs struct {
	Cut       string // where text was cut off
	Rule      string // a horizontal line
	Up, Down  string // the direction of an order
	Bar, Rest string // used and unused parts of a bar
	Planned   string // a planned stretch of time
	Levels    []string
	Cursor    string
	Mark      string
	Open      string // an expanded group
	Shut      string // a collapsed one
}

// Unicode and ASCII are the two sets there are.
var (
	Unicode = Glyphs{Cut: "…", Rule: "─", Up: "▲", Down: "▼", Bar: "█", Rest: "░", Planned: "▒",
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Cursor: "›", Mark: "●", Open: "▾", Shut: "▸"}
	ASCII = Glyphs{Cut: "~", Rule: "-", Up: "^", Down: "v", Bar: "#", Rest: ".", Planned: "=",
		Levels: []string{"_", ".", "-", "=", "+", "*", "%", "#"}, Cursor: ">", Mark: "*", Open: "-", Shut: "+"}
)

// UTF8 tells whether the environment asks for UTF-8, as setlocale(3) reads it.
func UTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Meter is a bar of width cells of which part/whole is used.
func (g *Glyphs) Meter(part, whole int64, width int) string {
	if whole <= 0 || width <= 0 {
		return strings.Repeat(g.Rest, max(0, width))
	}
	n := int(min(int64(width), max(0, (part*int64(width)+whole/2)/whole)))
	return strings.Repeat(g.Bar, n) + strings.Repeat(g.Rest, width-n)
}

// Spark shows the last width values, each between 0 and 1, one cell a value.
func (g *Glyphs) Spark(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	for _, v := range values {
		i := int(v * float64(len(g.Levels)))
		b.WriteString(g.Levels[min(len(g.Levels)-1, max(0, i))])
	}
	return b.String()
}
