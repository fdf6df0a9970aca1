package main

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/option"
)

// scripts makes batch scripts: real ones and made ones, with mistakes that people, editors
// and other programs make, and with bytes that nobody expects.
type scripts struct {
	*generator
	seeds [][]string // lines of real scripts
}

// newScripts returns a generator that starts from the scripts with directives in dir.
func newScripts(seed uint64, dir string) (*scripts, error) {
	s := &scripts{generator: newGenerator(seed)}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), "#!") && strings.Contains(string(text), "\n#SBATCH ") {
			s.seeds = append(s.seeds, strings.Split(string(text), "\n"))
		}
		return err
	})
	return s, err
}

// next returns an sbatch --test-only of a script. Its lines are parts, which shrinking drops.
func (s *scripts) next() *call {
	lines := s.lines()
	for range s.r.IntN(4) {
		lines = s.mutated(lines)
	}
	c := &call{kind: query, command: "sbatch", isScript: true,
		parts: []part{{words: []string{"--test-only"}, fixed: true}}}
	for _, l := range lines {
		c.parts = append(c.parts, part{place: inScript, words: []string{l}})
	}
	return c
}

// lines returns the lines of a script before it is mutated.
func (s *scripts) lines() []string {
	if len(s.seeds) > 0 && s.r.IntN(3) == 0 {
		return append([]string(nil), s.seeds[s.r.IntN(len(s.seeds))]...)
	}
	lines := []string{oneOf(s.r, []string{"#!/bin/sh", "#!/bin/bash -l", "#! /usr/bin/env python3", "#!/bin/csh"})}
	table := usableOptions("sbatch")
	for range 1 + s.r.IntN(6) {
		o := oneOf(s.r, table)
		v := ""
		if o.Arg != option.NoArg {
			v = s.value("sbatch", o)
		}
		lines = append(lines, "#SBATCH "+strings.Join(s.spell(o, v, true), " "))
	}
	return append(lines, oneOf(s.r, []string{"", "# a comment", "#SBATCHED"}), "hostname", "srun true")
}

// A mutation changes a script at one place. at is the index of a line, most often of one with
// a directive.
type mutation func(s *scripts, lines []string, at int) []string

// changeLine returns the mutation that replaces one line.
func changeLine(f func(s *scripts, l string) string) mutation {
	return func(s *scripts, lines []string, at int) []string {
		lines[at] = f(s, lines[at])
		return lines
	}
}

// insert returns the mutation that puts a line before another.
func insert(f func(s *scripts) string) mutation {
	return func(s *scripts, lines []string, at int) []string {
		return append(lines[:at:at], append([]string{f(s)}, lines[at:]...)...)
	}
}

// replaced returns the mutation that replaces the first occurrence of a text.
func replaced(old string, with ...string) mutation {
	return changeLine(func(s *scripts, l string) string { return strings.Replace(l, old, oneOf(s.r, with), 1) })
}

var mutations = []mutation{
	// What people write.
	replaced("#SBATCH", "# SBATCH", "##SBATCH", "#sbatch", "#SBATCH:", " #SBATCH", "\t#SBATCH", "#SBATCH\t",
		"#PBS", "#BSUB"),
	replaced("#SBATCH ", "#SBATCH", "#SBATCH  ", "#SBATCH \t", "#SBATCH - "),
	replaced("--", "-", "---", "—", "–", "++", "-- "), // an editor's dashes among them
	replaced("=", " ", " = ", "==", "=\"", "='", "= ", ":", ""),
	replaced(",", ", ", ";", ",,", " ", ""),
	changeLine(func(s *scripts, l string) string {
		return l + oneOf(s.r, []string{" # why", "#why", " \\", "\\", " ;", " \"", "'",
			" ''", " # it's", " &&", "  ", "\t", " extra", " -", " --"})
	}),
	changeLine(func(s *scripts, l string) string { // a letter is missing, or twice
		if len(l) < 12 {
			return l
		}
		i := 9 + s.r.IntN(len(l)-9)
		return oneOf(s.r, []string{l[:i] + l[i+1:], l[:i] + l[i:i+1] + l[i:]})
	}),
	func(_ *scripts, lines []string, at int) []string { // a line twice
		return append(lines[:at:at], append([]string{lines[at]}, lines[at:]...)...)
	},
	func(_ *scripts, lines []string, at int) []string { // a line too few
		return append(lines[:at:at], lines[at+1:]...)
	},
	func(_ *scripts, lines []string, at int) []string { // a directive behind a command
		return append(append(lines[:at:at], lines[at+1:]...), lines[at])
	},
	insert(func(s *scripts) string {
		return oneOf(s.r, []string{"", "set -e", "# --time=1", "#SBATCH", "#SBATCH ", "#SBATCH hetjob",
			"#SBATCH packjob",
			"#SBATCH --", "#SBATCH -", "#SBATCH true", "#SBATCH -h -z", "#SBATCH --no-such-option=1", "#SBATCH -t"})
	}),
	insert(func(s *scripts) string { return "#SBATCH --" + s.name() + "=" + s.oddValue() }),
	insert(func(s *scripts) string { return "#SBATCH --" + s.name() }),
	// What editors and other systems leave.
	func(_ *scripts, lines []string, _ int) []string {
		return strings.Split(strings.Join(lines, "\r\n"), "\n")
	},
	changeLine(func(_ *scripts, l string) string { return l + "\r" }),
	func(_ *scripts, lines []string, _ int) []string {
		return append([]string{"\ufeff" + lines[0]}, lines[1:]...)
	},
	func(_ *scripts, lines []string, _ int) []string { return append([]string{""}, lines...) },
	func(_ *scripts, lines []string, _ int) []string { return lines[1:] },
	// What nobody expects.
	changeLine(func(s *scripts, l string) string {
		i := s.r.IntN(len(l) + 1)
		return l[:i] + s.oddValue() + l[i:]
	}),
	changeLine(func(s *scripts, l string) string {
		if l == "" {
			return l
		}
		b := []byte(l)
		b[s.r.IntN(len(b))] = byte(s.r.IntN(256))
		return string(b)
	}),
}

// mutated returns the lines with one mutation.
func (s *scripts) mutated(lines []string) []string {
	if len(lines) == 0 {
		return lines
	}
	at := s.r.IntN(len(lines))
	for range 3 { // directives are what sbatch reads
		if strings.HasPrefix(lines[at], "#SBATCH") {
			break
		}
		at = s.r.IntN(len(lines))
	}
	lines = mutations[s.r.IntN(len(mutations))](s, lines, at)
	return strings.Split(strings.Join(lines, "\n"), "\n") // a line may have become two
}

// name returns the name of an option.
func (s *scripts) name() string { return oneOf(s.r, usableOptions("sbatch")).Name }

// oddValue returns a value at the edge of what can be written.
func (s *scripts) oddValue() string {
	return oneOf(s.r, []string{
		"", "0", "-1", "+5", "1.5", "1e3", "0x10", "007", "99999999999999999999", "4294967295",
		"2147483648", "1k", "1K", "1G",
		"1-2", "2-1", "1-", "-", ",", "1,2", ":", "a:b:c", "*", "$HOME", "`id`", "%j", "%%",
		"~", "[", "n[1-2", "n1,", "@", "=",
		"'", "\"", "\\", "\\n", "\t", "\x1b[31m", "\x01", "\x7f", "ä", "日本", "\xff\xfe",
		"🙂", "none", "all", "UNLIMITED",
		"INFINITE", "now", "now+1", "midnight", "yes", "no",
		strings.Repeat("x", 300), strings.Repeat("1", 40),
		strconv.Itoa(s.r.IntN(100000)),
	})
}

// oneOf returns an element of the list.
func oneOf[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// startLine matches what --test-only prints of a job that is accepted. When and where it
// would start depends on the moment.
var startLine = regexp.MustCompile(`^sbatch: Job \S+ to start at `)

// scriptAnswer returns the lines of an answer to a script in normal form. Berth escapes
// control characters that a script has, because they would reach a terminal.
func scriptAnswer(lines []line) []line {
	for i, l := range lines {
		lines[i].text = printable.Escape(l.text)
		if startLine.MatchString(l.text) {
			lines[i].text = "accepted"
		}
	}
	return lines
}
