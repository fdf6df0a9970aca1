package keyvalue

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFields(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                 nil,
		" \t\r\n":                          nil,
		"show job 12":                      {"show", "job", "12"},
		"  show\tjob\r\n":                  {"show", "job"},
		`update comment="two words" x='y'`: {"update", "comment=two words", "x=y"},
		`a"b c"d`:                          {"ab cd"},
		`"it's" 'say "hi"'`:                {"it's", `say "hi"`},
		`set comment=""`:                   {"set", "comment="},
		`'' x ""`:                          {"", "x", ""},
		`open "to the end`:                 {"open", "to the end"},
		"ä\u00a0ö ü":                       {"ä\u00a0ö", "ü"},
	} {
		if got := Fields(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	colon := func(r rune) bool { return r == ':' }
	got := Split(`'user':A=b::C='d:e'`, colon)
	if want := []string{"user", "A=b", "C=d:e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAbbreviates(t *testing.T) {
	for _, c := range []struct {
		word, name string
		least      int
		want       bool
	}{
		{"Account", "account", 7, true}, {"ACC", "account", 3, true}, {"ac", "account", 3, false},
		{"accounts", "account", 3, false}, {"act", "account", 3, false}, {"", "account", 1, false},
		{"accoun", "account", 7, false},
	} {
		if got := Abbreviates(c.word, c.name, c.least); got != c.want {
			t.Errorf("%q for %q with %d letters: %v", c.word, c.name, c.least, got)
		}
	}
}

func TestUnique(t *testing.T) {
	names := []string{"TimeLimit", "TimeMin", "Time", "Comment"}
	for word, want := range map[string]string{
		"comm": "Comment", "TIME": "Time", "timel": "TimeLimit", "tim": "", "co": "", "x": "",
	} {
		if got := Unique(word, names, 3); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for word, want := range map[string]Pair{
		"qos=a,b":    {Key: "qos", Op: Assign, Value: "a,b"},
		"qos+=a":     {Key: "qos", Op: Add, Value: "a"},
		"qos-='a'":   {Key: "qos", Op: Remove, Value: "a"},
		`name="a=b"`: {Key: "name", Op: Assign, Value: "a=b"},
		"where":      {Op: Assign, Value: "where"},
		"x=":         {Key: "x", Op: Assign},
	} {
		want.Text = word
		if got := Parse(word); got != want {
			t.Errorf("%q: %+v, want %+v", word, got, want)
		}
	}
	if got := ParseAll([]string{"a", "b=c"}); len(got) != 2 || got[1].Key != "b" {
		t.Errorf("%+v", got)
	}
	p := Parse("names= Anna,ben,,Anna")
	if !slices.Equal(p.List(), []string{"Anna", "ben"}) || !slices.Equal(p.LowerList(), []string{"anna", "ben"}) {
		t.Errorf("%q, %q", p.List(), p.LowerList())
	}
}

func TestChange(t *testing.T) {
	list := []string{"a", "b"}
	for op, want := range map[string][]string{Assign: {"b", "c"}, Add: {"a", "b", "c"}, Remove: {"a"}} {
		if got := Change(list, op, []string{"b", "c"}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", op, got, want)
		}
	}
	if got := Change(list, Remove, list); got != nil {
		t.Errorf("%q, want nil", got)
	}
	if !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("the list itself became %q", list)
	}
}

type settings struct{ set []string }

func record(name string) func(*settings, Pair) error {
	return func(s *settings, p Pair) error {
		if p.Value == "bad" {
			return errBad
		}
		s.set = append(s.set, name+p.Op+p.Value)
		return nil
	}
}

var errBad = errors.New("bad value")

func TestTable(t *testing.T) {
	table := Table[*settings]{
		{Name: "tree", Least: 4, Form: Word, Set: record("tree")},
		Any(record("other")),
		{Name: "Name", Least: 1, Set: record("name")},
		{Name: "NodeCnt", Least: 5, Set: record("nodes")},
		{Name: "DefQOS", Set: record("default")},
		{Name: "where", Least: 5, Set: Ignored[*settings]},
	}
	for word, want := range map[string]string{
		"tree": "tree=tree", "tre": "other=tre", "n=1": "name=1", "N+=1": "name+1", "nodec=2": "nodes=2",
		"defqos=x": "default=x", "where=1": "", "defq=x": "unknown", "tree=1": "unknown",
	} {
		var s settings
		known, err := table.Set(&s, Parse(word))
		got := strings.Join(s.set, " ")
		if !known {
			got = "unknown"
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", word, got, err, want)
		}
	}
	if known, err := table.Set(&settings{}, Parse("name=bad")); !known || !errors.Is(err, errBad) {
		t.Errorf("%v, %v", known, err)
	}
}

// A keyword of either form has an empty value where there is no "=".
func TestEitherForm(t *testing.T) {
	table := Table[*settings]{{Name: "start", Least: 1, Form: Either, Set: record("start")}}
	var s settings
	for _, word := range []string{"start=now", "s"} {
		if known, err := table.Set(&s, Parse(word)); !known || err != nil {
			t.Fatalf("%q: %v, %v", word, known, err)
		}
	}
	if !slices.Equal(s.set, []string{"start=now", "start="}) {
		t.Errorf("%q", s.set)
	}
}

func TestPrompt(t *testing.T) {
	for input, want := range map[string]string{
		"":                       "> ",
		"a b\n\n 'c d'\n":        "> [a b]> > [c d]> ",
		"a\nquit\nb\n":           "> [a]> [quit]",
		"a\nb":                   "> [a]> [b]> ",
		"x\n" + "y z \r\nquit x": "> [x]> [y z]> [quit x]",
	} {
		var out strings.Builder
		p := &Prompt{
			Text: "> ", In: bufio.NewReader(strings.NewReader(input)),
			Print: func(text string) error { _, err := out.WriteString(text); return err },
			Run: func(words []string) bool {
				out.WriteString("[" + strings.Join(words, " ") + "]")
				return words[0] == "quit"
			},
		}
		if err := p.Loop(); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v, want %q", input, out.String(), err, want)
		}
	}
}

func TestPromptErrors(t *testing.T) {
	run := func([]string) bool { return false }
	in := bufio.NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errBad)))
	p := &Prompt{In: in, Print: func(string) error { return nil }, Run: run}
	if err := p.Loop(); !errors.Is(err, errBad) {
		t.Errorf("of the input: %v", err)
	}
	p = &Prompt{In: bufio.NewReader(strings.NewReader("a\n")), Print: func(string) error { return errBad }, Run: run}
	if err := p.Loop(); !errors.Is(err, errBad) {
		t.Errorf("of the prompt: %v", err)
	}
}
