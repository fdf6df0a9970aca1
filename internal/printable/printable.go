// Package printable makes texts of other users safe to print: control characters and
// bidirectional overrides could control a terminal, and a line break could forge a record.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape replaces characters that could control a terminal or break a line (control
// characters, bidirectional overrides, bytes that are not UTF-8) by \xNN or \uNNNN.
func Escape(s string) string {
	return string(EscapeFrom([]byte(s), 0))
}

// EscapeLines is Escape for a text of several lines: line breaks and tabs remain.
func EscapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		columns := strings.Split(l, "\t")
		for k, c := range columns {
			columns[k] = Escape(c)
		}
		lines[i] = strings.Join(columns, "\t")
	}
	return strings.Join(lines, "\n")
}

// EscapeFrom escapes b[start:] as Escape does. It may change b.
func EscapeFrom(b []byte, start int) []byte {
	if isPlainASCII(b[start:]) {
		return b
	}
	value := string(b[start:])
	b = b[:start]
	for i, r := range value {
		size := utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError && !validAt(value, i):
			b = fmt.Appendf(b, `\x%02x`, value[i])
		case isUnsafe(r) && r < 0x100:
			b = fmt.Appendf(b, `\x%02x`, r)
		case isUnsafe(r):
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, value[i:i+size]...)
		}
	}
	return b
}

// JSON returns encoded JSON with the same values, whose strings have no characters that could
// control a terminal. JSON permits most of them in strings, and encoding/json does not escape
// them; outside of strings there are none. b must be valid UTF-8.
func JSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		switch {
		case r < 0x7f || !isUnsafe(r): // below 0x20 are the line breaks between values
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// validAt reports whether the replacement character at s[i:] is in the text, and not the
// result of invalid UTF-8.
func validAt(s string, i int) bool {
	_, size := utf8.DecodeRuneInString(s[i:])
	return size > 1
}

// isPlainASCII reports whether b is printable ASCII, which needs no escaping.
func isPlainASCII(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isUnsafe reports whether r could control a terminal or break a line.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
