package format

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Escape replaces characters that could control a terminal or break a line (control
// characters, bidirectional overrides, bytes that are not UTF-8) by \xNN or \uNNNN.
func Escape(s string) string {
	return string(escapeFrom([]byte(s), 0))
}

// escapeFrom escapes b[start:].
func escapeFrom(b []byte, start int) []byte {
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

func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
