package printable_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/berth-hpc/berth/internal/printable"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain name":     "plain name",
		"ümläut 日本":      "ümläut 日本",
		"a\x1b[2Jb":      `a\x1b[2Jb`,
		"line\nbreak":    `line\x0abreak`,
		"bad\xffbyte":    `bad\xffbyte`,
		"c1\u009bclear":  `c1\x9bclear`,
		"over\u202eride": `over\u202eride`,
		"del\x7f":        `del\x7f`,
		"real � rune":    "real � rune",
	} {
		if got := printable.Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzEscape checks that no unsafe character is left.
func FuzzEscape(f *testing.F) {
	f.Add("a\x1b]0;x\a")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable.Escape(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q: %q", s, got)
		}
	})
}

func TestEscapeLines(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"one\ntwo\t3\n":             "one\ntwo\t3\n",
		"a\x1b[31m\r\nb\u009bc\x7f": "a\\x1b[31m\\x0d\nb\\x9bc\\x7f",
		"\u202ex\xff":               `\u202ex\xff`,
	} {
		if got := printable.EscapeLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	value := map[string]string{"name": "é日🙂\x1b\u009b\x7f\u202e\u2028\U000e0001\t\n", "plain": "a"}
	encoded, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	safe := printable.JSON(encoded)
	for _, r := range string(safe) {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%q has %U", safe, r)
		}
	}
	var got map[string]string
	if err := json.Unmarshal(safe, &got); err != nil || got["name"] != value["name"] || got["plain"] != "a" {
		t.Errorf("%q: %q, %v", safe, got, err)
	}
}

// FuzzJSON checks that JSON does not change values.
func FuzzJSON(f *testing.F) {
	f.Add("a\u009b\U000e0001\"\\")
	f.Fuzz(func(t *testing.T, s string) {
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Skip()
		}
		var want, got string
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(printable.JSON(encoded), &got); err != nil || got != want {
			t.Errorf("%q became %q, %v", want, got, err)
		}
	})
}
