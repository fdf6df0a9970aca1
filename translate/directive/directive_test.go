package directive

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// TestSplit checks the words of directives as sbatch 22.05.8 splits them.
func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		` -J ring # a comment`:       {"-J", "ring"},
		` --comment=a\#b`:            {"--comment=a#b"},
		` --comment="a\"b" -n 2`:     {`--comment=a"b`, "-n", "2"},
		` --comment='a"b' -n 2`:      {`--comment=a"b`, "-n", "2"},
		` --comment='a\'b' -n 2`:     {"--comment=a'b", "-n", "2"},
		` --comment=a"b c"d -n 2`:    {"--comment=ab cd", "-n", "2"},
		` --comment='a\b' -n 2`:      {"--comment=ab", "-n", "2"},
		` --comment=a\ -n 3`:         {"--comment=a", "-n", "3"},
		` --comment=a#b -n 3`:        {"--comment=a"},
		` --comment="#x" -n 2`:       {"--comment=#x", "-n", "2"},
		"-n\t2\t--comment=t":         {"-n", "2", "--comment=t"},
		` "-n" 2`:                    {"-n", "2"},
		` ""`:                        nil,
		` -J "" -n2`:                 {"-J"},
		` -J""b -n2`:                 {"-Jb", "-n2"},
		` "" -n2`:                    nil,
		` -n2 hetjob -N1`:            {"-n2"},
		` -n2 HetJob`:                {"-n2"},
		` -n2 "hetjob"`:              {"-n2", "hetjob"},
		` -n2 hetjobs`:               {"-n2", "hetjobs"},
		` -J a:b "":c ":d" \:e`:      {"-J", "a:b", ":c", ":d", ":e"},
		` -n 4\`:                     {"-n", "4"},
		` -n 2 # "unclosed`:          {"-n", "2"},
		"foo":                        {"foo"},
		` --comment="a""b"'c' -n 2 `: {"--comment=abc", "-n", "2"},
	} {
		l, rest := split(line)
		words := l.Words
		if rest != "" || !slices.Equal(words, want) {
			t.Errorf("%q: %q, rest %q; want %q", line, words, rest, want)
		}
	}
}

// TestCut checks that a comment cuts a word short only if it starts within it.
func TestCut(t *testing.T) {
	for line, want := range map[string]bool{
		" --container-image=docker://a#b": true, " -n2 --comment=a#": true, " --comment=a #b": false,
		` --comment="a#b"`: false, " #x": false,
		" -n2 a#b -N1": true, ` --comment=a\#b`: false, " -n2": false,
	} {
		r, err := Read("s.sh", []byte("#!/bin/sh\n#SBATCH"+line+"\n#SBATCH -n1\n"))
		if err != nil || len(r.Lines) == 0 || r.Lines[0].Cut != want {
			t.Errorf("%q: %+v, %v; want %t", line, r.Lines, err, want)
		}
	}
}

func TestWhereDirectivesStop(t *testing.T) {
	for script, want := range map[string]int{
		"#!/bin/sh\n#SBATCH -n 1\n\n \t\n# c\n##SBATCH -n 2\n# SBATCH -n 2\n #SBATCH -n 2\n#SBATCH -n 3\n": 2,
		"#!/bin/sh\n#SBATCH -n 1\necho\n#SBATCH -n 2\n":                                                    1,
		"#!/bin/sh\n: <<E\n#SBATCH -n 1\nE\n":                                                              0,
		"#!/bin/sh\n#SBATCH\n#sbatch -n 1\n#SBATCH-n 2":                                                    1,
	} {
		r, err := Read("s.sh", []byte(script))
		if err != nil || len(r.Lines) != want {
			t.Errorf("%q: %v, %v; want %d lines", script, r.Lines, err, want)
		}
	}
}

// TestSeparators checks which lines separate the components of a heterogeneous job.
func TestSeparators(t *testing.T) {
	for line, want := range map[string]bool{
		"hetjob": true, " hetjob": true, "\t packjob": true, " HetJob": true, " hetjob # c": true,
		" hetjob -n2": true, ` hetjob "a`: true,
		" hetjobs": false, " hetjob#c": false, ` "hetjob"`: false, " -n1 hetjob": false, " hetjob:": false,
		` hetjob\`: false, " het": false,
	} {
		r, err := Read("s.sh", []byte("#!/bin/sh\n#SBATCH"+line+"\n"))
		if err != nil || len(r.Lines) != 1 || r.Lines[0].Separator != want {
			t.Errorf("%q: %+v, %v; want %v", line, r.Lines, err, want)
		}
	}
}

func TestIgnoredWords(t *testing.T) {
	for line, want := range map[string]string{
		` -J "" -n2`: `""`, " -n2 hetjob -N1": "hetjob", " -n2 hetjob # c": "hetjob", ` '' x`: "''",
		` -J ""`: "", " -n2 # hetjob x": "", " hetjob x": "",
	} {
		r, err := Read("s.sh", []byte("#!/bin/sh\n#SBATCH"+line+"\n"))
		if err != nil || len(r.Lines) != 1 {
			t.Fatalf("%q: %+v, %v", line, r, err)
		}
		l, got := r.Lines[0], ""
		if l.Ignored {
			got = l.End
		}
		if got != want {
			t.Errorf("%q: words after %q are ignored, want %q", line, got, want)
		}
	}
}

func TestLinesThatCannotBeSplit(t *testing.T) {
	for line, want := range map[string]string{
		`#SBATCH -J "a b`:             "s.sh: line 2: Unmatched `\"` in [ \"a b]",
		`#SBATCH --comment='a b -n 2`: "s.sh: line 2: Unmatched `'` in [--comment='a b -n 2]",
		`#SBATCH: -n1`:                "s.sh: line 2: Unexpected `:` in [: -n1]",
		`#SBATCH -n1 :`:               "s.sh: line 2: Unexpected `:` in [ :]",
		"#SBATCH -n1 \t:b c":          "s.sh: line 2: Unexpected `:` in [ \t:b c]",
	} {
		_, err := Read("s.sh", []byte("#!/bin/sh\n"+line+"\n"))
		var e *slurmerr.Error
		if !errors.As(err, &e) || e.Kind != slurmerr.Fatal || e.Message != want {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
}

// unlikeShell are the characters that Slurm treats differently from a shell: the
// backslash, the comment sign, and blanks that a shell does not treat as such.
const unlikeShell = ":\\#\v\f\r"

// FuzzSplit checks that texts without the characters of unlikeShell are split as a
// shell splits them, except that empty words are dropped.
func FuzzSplit(f *testing.F) {
	f.Add(` -J "a b" 'c d'e`)
	f.Add("\t--comment=\"\" ''x \xff")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, unlikeShell+"\n") {
			return
		}
		l, rest := split(text)
		words, cut := l.Words, l.Cut
		shell, err := shellquote.Split(text)
		if err != nil {
			if rest == "" && l.End == "" {
				t.Fatalf("%q: %q; a shell: %v", text, words, err)
			}
			return
		}
		if i := slices.IndexFunc(shell, func(w string) bool {
			return w == "" || strings.EqualFold(w, "hetjob") || strings.EqualFold(w, OldSeparator)
		}); i >= 0 && len(words) == i {
			shell = shell[:i] // it ends the directive
		}
		if !slices.Equal(words, shell) || rest != "" || cut {
			t.Fatalf("%q: %q, rest %q; a shell: %q", text, words, rest, shell)
		}
	})
}

// FuzzRead checks that parsing String of a line returns the same words.
func FuzzRead(f *testing.F) {
	f.Add("#!/bin/sh\n#SBATCH -J 'a b' # c\n")
	f.Add("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob 'x\n#SBATCH -n2\n")
	f.Add("#SBATCH --comment=\"a\\\"b\"\n\n#SBATCH x\\ y\ntrue")
	f.Fuzz(func(t *testing.T, script string) {
		r, err := Read("f", []byte(script))
		if err != nil {
			return
		}
		for _, l := range r.Lines {
			if strings.ContainsAny(strings.Join(l.Words, ""), "\n") {
				t.Fatalf("%q: a word contains a newline", l.Words)
			}
			if len(l.Words) == 0 {
				continue // an empty word ended it
			}
			again, err := Read("f", []byte(l.String()))
			if err != nil || len(again.Lines) != 1 || again.Lines[0].Separator != l.Separator ||
				!slices.Equal(again.Lines[0].Words, l.Words) {
				t.Fatalf("%q became %v, %v", l.Words, again.Lines, err)
			}
		}
	})
}
