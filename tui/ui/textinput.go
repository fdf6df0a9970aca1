package ui

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
)

// maxInput bounds the length of a line in bytes, against pasted garbage.
const maxInput = 4096

// TextInput is one line of text that is being typed. The zero value is empty.
// (The text input of Bubbles links a package that looks for clipboard programs at
// start; here the terminal pastes.)
type TextInput struct {
	text []rune
	at   int // position of the cursor, in runes
}

// Text returns the text.
func (l *TextInput) Text() string { return string(l.text) }

// Set replaces the text and moves the cursor to its end.
func (l *TextInput) Set(s string) {
	l.text = []rune(Printable(s, maxInput))
	l.at = len(l.text)
}

// Insert adds text at the cursor, as far as it fits.
func (l *TextInput) Insert(s string) {
	room := maxInput - len(string(l.text))
	add := []rune(Printable(s, max(0, room)))
	l.text = append(l.text[:l.at:l.at], append(add, l.text[l.at:]...)...)
	l.at += len(add)
}

// Press edits the line as a key says. It returns false for a key that does not
// edit.
func (l *TextInput) Press(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "left", "ctrl+b":
		l.at = max(0, l.at-1)
	case "right", "ctrl+f":
		l.at = min(len(l.text), l.at+1)
	case "home", "ctrl+a":
		l.at = 0
	case "end", "ctrl+e":
		l.at = len(l.text)
	case "backspace", "ctrl+h":
		if l.at > 0 {
			l.cut(l.at-1, l.at)
		}
	case "delete", "ctrl+d":
		l.cut(l.at, min(len(l.text), l.at+1))
	case "ctrl+u":
		l.cut(0, l.at)
	case "ctrl+k":
		l.cut(l.at, len(l.text))
	case "ctrl+w", "alt+backspace":
		l.cut(l.wordBefore(), l.at)
	default:
		if k.Text == "" || k.Mod&^tea.ModShift != 0 {
			return false
		}
		l.Insert(k.Text)
	}
	return true
}

func (l *TextInput) cut(from, to int) {
	l.text = append(l.text[:from:from], l.text[to:]...)
	l.at = from
}

func (l *TextInput) wordBefore() int {
	i := l.at
	for i > 0 && l.text[i-1] == ' ' {
		i--
	}
	for i > 0 && l.text[i-1] != ' ' {
		i--
	}
	return i
}

// View returns the part of the line around the cursor that fits into width cells,
// and the cell of the cursor.
func (l *TextInput) View(width int) (text string, cursor int) {
	if width <= 1 {
		return "", 0
	}
	from := 0
	for Width(string(l.text[from:l.at])) > width-1 {
		from++
	}
	return Truncate(string(l.text[from:]), width, ""), Width(string(l.text[from:l.at]))
}

// Valid reports whether s can be shown as it is.
func Valid(s string) bool { return utf8.ValidString(s) && printable.Escape(s) == s }
