package hostlist

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPatternMatchesExpandedNames checks that the pattern of a random expression
// matches exactly the names that ExpandLenient returns.
func TestPatternMatchesExpandedNames(t *testing.T) {
	number := rapid.StringMatching(`0{0,2}[0-9]{1,2}`)
	bracket := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			part := number.Draw(t, "first")
			if rapid.Bool().Draw(t, "range") {
				part += "-" + number.Draw(t, "last")
			}
			return part
		}), 1, 3).Draw(t, "parts")
		return "[" + strings.Join(parts, ",") + "]"
	})
	term := rapid.Custom(func(t *rapid.T) string {
		text := ""
		for range rapid.IntRange(0, 2).Draw(t, "brackets") {
			text += rapid.SampledFrom([]string{"n", "", "a1", "0", "-"}).Draw(t, "literal") + bracket.Draw(t, "bracket")
		}
		if text == "" {
			text = rapid.StringMatching(`[an][0-9]{0,3}`).Draw(t, "name")
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(term, 1, 3).Draw(t, "terms"), ",")
		names, err := ExpandLenient(text)
		p, patternErr := ParsePattern(text)
		if (err == nil) != (patternErr == nil) {
			t.Fatalf("%q: ExpandLenient returns %v, ParsePattern %v", text, err, patternErr)
		}
		if err != nil {
			return
		}
		for _, name := range names {
			if !p.Match(name) {
				t.Fatalf("%q expands to %q, which does not match", text, name)
			}
		}
		other := rapid.StringMatching(`(n|a1|0|-|)[0-9]{0,4}(n|-|)[0-9]{0,4}`).Draw(t, "other")
		if p.Match(other) != slices.Contains(names, other) {
			t.Fatalf("%q: Match(%q) is %v", text, other, p.Match(other))
		}
	})
}

func TestPatternOfManyTexts(t *testing.T) {
	p, err := ParsePattern("n[1-3]", "m7,n[08-10]")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"n2": true, "m7": true, "n09": true, "n9": false, "n10": true, "n4": false, "": false,
	} {
		if p.Match(name) != want {
			t.Errorf("Match(%q) is %v", name, !want)
		}
	}
	if none, err := ParsePattern(); err != nil || !none.Empty() || none.Match("n1") {
		t.Errorf("a pattern without texts: %v %v", none, err)
	}
	if (*Pattern)(nil).Match("n1") {
		t.Error("a nil pattern matches")
	}
}

// TestPatternIsNotExpanded checks that the size of a pattern depends on that of its
// text, not on the number of names.
func TestPatternIsNotExpanded(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "c%d-[0-65535],", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := ParsePattern(text.String())
	runtime.ReadMemStats(&after)
	if err != nil || !p.Match("c499-65535") || p.Match("c500-1") {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 200*uint64(text.Len()) {
		t.Errorf("a text of %d bytes needs %d bytes of memory", text.Len(), got)
	}
	var e *Error
	if _, err := ParsePattern(strings.Repeat("n[1],", MaxBrackets+1)); !errors.As(err, &e) {
		t.Errorf("%d terms with brackets: %v", MaxBrackets+1, err)
	}
}

func BenchmarkPatternMatch(b *testing.B) {
	p, err := ParsePattern("n[1-100,500-900],m7")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p.Match("n4000") || !p.Match("n512") {
			b.Fatal("wrong")
		}
	}
}
