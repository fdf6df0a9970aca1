package format

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Escape replaces what could steer a terminal or break a line (control
// characters, bidirectional overrides, bytes that are no UTF-8) by \xNN or
// \uNNNN. Anything else stays as it is.
func Escape(s string) string {
	return string(escapeFrom([]byte(s), 0))
}

// escapeFrom escapes b[start:].
func escapeFrom(b []byte, start int) []byte {
	if harmless(b[start:]) {
		return b
	}
	value := string(b[start:])
	b = b[:start]
	for i, r := range value {
		size := utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError && !validAt(value, i):
			b = fmt.Appendf(b, `\x%02x`, value[i])
		case hostile(r) && r < 0x100:
			b = fmt.Appendf(b, `\x%02x`, r)
		case hostile(r):
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

// harmless reports quickly that nothing needs escaping: printable ASCII only.
func harmless(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func hostile(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
