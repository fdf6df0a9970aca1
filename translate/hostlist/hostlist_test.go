package hostlist

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// vectors are expressions and the output of scontrol show hostnames and show
// hostlist of Slurm 22.05.8.
var vectors = []struct{ text, names, folded string }{
	{"n3,n1", "n3 n1", "n[3,1]"},
	{"n1,n2,n10", "n1 n2 n10", "n[1-2,10]"},
	{"n01,n02,n3", "n01 n02 n3", "n[01-02,3]"},
	{"n1,n1", "n1 n1", "n[1,1]"},
	{"r[0-1]n[0-2]", "r0n0 r0n1 r0n2 r1n0 r1n1 r1n2", "r0n[0-2],r1n[0-2]"},
	{"n[1-3,5],m[08-11]", "n1 n2 n3 n5 m08 m09 m10 m11", "n[1-3,5],m[08-11]"},
	{"n9,n10", "n9 n10", "n[9-10]"},
	{"n09,n10", "n09 n10", "n[09-10]"},
	{"n[1-2][3-4]", "n13 n14 n23 n24", "n[13-14,23-24]"},
	{"a,b,a1,a2", "a b a1 a2", "a,b,a[1-2]"},
	{"n[1-", "n]", "n]"},
	{"a,n[1,b", "a n] b", "a,n],b"},
	{"n]1", "n]1", "n]1"},
	{"n1-2,n1-3", "n1-2 n1-3", "n1-[2-3]"},
	{"n1,,n2", "n1 n2", "n[1-2]"},
	{"n[001-003],n04", "n001 n002 n003 n04", "n[001-003,04]"},
	{"n99,n100", "n99 n100", "n[99-100]"},
	{"x1y1,x1y2,x2y1,x2y2", "x1y1 x1y2 x2y1 x2y2", "x1y[1-2],x2y[1-2]"},
	{"n1,n3,n2", "n1 n3 n2", "n[1,3,2]"},
	{"n1,m1,n2", "n1 m1 n2", "n1,m1,n2"},
	{"n[1,1-3]", "n1 n1 n2 n3", "n[1,1-3]"},
	{"n1.dom,n2.dom", "n1.dom n2.dom", "n1.dom,n2.dom"},
	{"n0001,n0002,n00003", "n0001 n0002 n00003", "n[0001-0002,00003]"},
	{"1,2", "1 2", "[1-2]"},
	{"", "", ""},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		names, err := ExpandLenient(v.text)
		if err != nil {
			t.Errorf("ExpandLenient(%q): %v", v.text, err)
			continue
		}
		if got := strings.Join(names, " "); got != v.names {
			t.Errorf("ExpandLenient(%q) = %q, want %q", v.text, got, v.names)
		}
		if strict, err := Expand(v.text); err == nil && !slices.Equal(strict, names) {
			t.Errorf("Expand(%q) = %q, want %q", v.text, strict, v.names)
		} else if open := strings.Contains(v.text, "[") && !strings.Contains(v.text, "]"); IsOpen(err) != open {
			t.Errorf("Expand(%q): %v", v.text, err)
		}
		// n[1-2][3-4] differs from Slurm, which preserves its two brackets; both
		// forms stand for the same names.
		if got := Fold(names); got != v.folded {
			t.Errorf("Fold(%q) = %q, want %q", v.names, got, v.folded)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, text := range []string{
		"a[1-3]b", "n[5-1]", "n[]", "n[a-b]", "n[0-99999]", "n[1-4]-ib", "n[1]]", "n[x],m[1", "n[1]m[2", "n[0-65535][0-65535]",
	} {
		var e *Error
		for _, expand := range []func(string) ([]string, error){Expand, ExpandLenient} {
			if names, err := expand(text); !errors.As(err, &e) || e.Text != text {
				t.Errorf("%q is %d names, %v; want an *Error about it", text, len(names), err)
			}
		}
	}
}

func TestFoldSorted(t *testing.T) {
	for in, want := range map[string]string{
		"n3,n1":          "n[1,3]",
		"n01,n02,n3":     "n[3,01-02]",
		"n1,m1,n2":       "m1,n[1-2]",
		"a,b,a1,a2":      "a,a[1-2],b",
		"n[001-003],n04": "n[04,001-003]",
		"n2,n1,n2":       "n[1-2]",
		"n1000,n0999":    "n[0999-1000]",
		"n100,n01,n2":    "n[2,01,100]",
	} {
		names, err := Expand(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := FoldSorted(names); got != want {
			t.Errorf("FoldSorted(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.text)
	}
	f.Add("n[1-9")
	f.Add("a[0-1]b[2-3],,c]")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := ExpandLenient(text)
		if err != nil {
			return
		}
		again, err := Expand(Fold(names))
		if err != nil {
			t.Fatalf("Expand(Fold(Expand(%q))): %v", text, err)
		}
		if !slices.Equal(names, again) {
			t.Fatalf("%q: %q became %q", text, names, again)
		}
	})
}

func BenchmarkFold4096(b *testing.B) {
	names, err := Expand("n[0001-4096]")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Fold(names)
	}
}
