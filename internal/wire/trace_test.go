package wire

import (
	"strings"
	"testing"
)

const aTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestTraceparent has the rules of W3C Trace Context, section 3.2.
func TestTraceparent(t *testing.T) {
	for text, want := range map[string]string{
		aTraceparent:                      aTraceparent,
		aTraceparent[:53] + "00":          aTraceparent[:53] + "00",
		aTraceparent[:53] + "03":          aTraceparent, // further flags are not passed on
		"cc" + aTraceparent[2:]:           aTraceparent, // a later version
		"cc" + aTraceparent[2:] + "-more": aTraceparent,
		"cc" + aTraceparent[2:] + "more":  "",
		aTraceparent + "-more":            "",
		"ff" + aTraceparent[2:]:           "",
		"":                                "",
		aTraceparent[:54]:                 "",
		strings.ToUpper(aTraceparent):     "",
		strings.Replace(aTraceparent, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1): "",
		strings.Replace(aTraceparent, "00f067aa0ba902b7", strings.Repeat("0", 16), 1):                 "",
		strings.ReplaceAll(aTraceparent, "-", "_"):                                                    "",
		strings.Replace(aTraceparent, "4", "g", 1):                                                    "",
	} {
		got, ok := ParseTraceparent(text)
		switch {
		case ok != (want != ""):
			t.Errorf("%q: ok is %v", text, ok)
		case ok && got.String() != want:
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, _ := ParseTraceparent(aTraceparent); got.TraceID() != aTraceparent[3:35] {
		t.Errorf("trace id %s", got.TraceID())
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add(aTraceparent)
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := ParseTraceparent(text); ok {
			if again, ok := ParseTraceparent(got.String()); !ok || again != got {
				t.Errorf("%q is %q, then %q", text, got, again)
			}
		}
	})
}
