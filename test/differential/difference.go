package main

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

// difference is a line that the systems print differently. A line that one of them does
// not print is "".
type difference struct {
	where        string
	slurm, berth string
}

// differences returns how two answers differ, in order: every key of the job that is shown,
// and the first line of the command itself, as later ones follow from it. A message counts
// before output, and that before the exit code.
func differences(slurm, berth []line) []difference {
	var all, shown []difference
	for _, h := range hunks(slurm, berth) {
		for _, d := range h.pairs() {
			if strings.HasPrefix(d.where, "show") {
				shown = append(shown, d)
			} else {
				all = append(all, d)
			}
		}
	}
	if !isShown(slurm) || !isShown(berth) {
		shown = nil // only one of them has the job
	}
	for _, where := range []string{"err", "out", "exit"} {
		if i := slices.IndexFunc(all, func(d difference) bool { return d.where == where }); i >= 0 {
			return append(all[i:i+1:i+1], shown...)
		}
	}
	return shown
}

// isShown reports whether an answer has a shown job.
func isShown(lines []line) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return l.where == "show out" })
}

// hunk has lines between two common ones.
type hunk struct{ slurm, berth []line }

// hunks returns where two lists of lines differ, by their longest common subsequence.
func hunks(a, b []line) []hunk {
	a, b = a[:min(len(a), maxLines)], b[:min(len(b), maxLines)]
	x, y := timed(a), timed(b)
	n := commonLengths(x, y)
	var out []hunk
	var h hunk
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && same(&x[i], &y[j]):
			if len(h.slurm)+len(h.berth) > 0 {
				out, h = append(out, h), hunk{}
			}
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && n[i+1][j] >= n[i][j+1]:
			h.slurm = append(h.slurm, a[i])
			i++
		default:
			h.berth = append(h.berth, b[j])
			j++
		}
	}
	if len(h.slurm)+len(h.berth) > 0 {
		out = append(out, h)
	}
	return out
}

// maxLines is how many lines of an answer are compared.
const maxLines = 400

// timedLine is a line, and its text with a mark in place of each instant and duration.
type timedLine struct {
	line
	marked string
}

func timed(lines []line) []timedLine {
	out := make([]timedLine, len(lines))
	for i, l := range lines {
		out[i] = timedLine{l, duration.ReplaceAllString(instant.ReplaceAllString(l.text, "\x00"), "\x00")}
	}
	return out
}

// same reports whether two lines are equal but for times that are close.
func same(a, b *timedLine) bool {
	if a.where != b.where || a.marked != b.marked {
		return false
	}
	return a.text == b.text || closeInTime(difference{a.where, a.text, b.text})
}

// commonLengths returns the lengths of the longest common subsequences of all suffixes.
func commonLengths(a, b []timedLine) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(&a[i], &b[j]) {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	return n
}

// pairs pairs the lines of a hunk: those of the same key first, then in order.
func (h *hunk) pairs() []difference {
	var out []difference
	rest := slices.Clone(h.berth)
	match := func(l line, same func(line) bool) (line, bool) {
		i := slices.IndexFunc(rest, func(o line) bool { return o.where == l.where && same(o) })
		if i < 0 {
			return line{}, false
		}
		o := rest[i]
		rest = slices.Delete(rest, i, i+1)
		return o, true
	}
	var single []line
	for _, l := range h.slurm {
		key := keyOf(l.text)
		if o, ok := match(l, func(o line) bool { return key != "" && keyOf(o.text) == key }); ok {
			out = append(out, difference{l.where, l.text, o.text})
			continue
		}
		single = append(single, l)
	}
	for _, l := range single {
		o, _ := match(l, func(o line) bool { return keyOf(l.text) == "" && keyOf(o.text) == "" })
		out = append(out, difference{l.where, l.text, o.text})
	}
	for _, o := range rest {
		out = append(out, difference{o.where, "", o.text})
	}
	return slices.DeleteFunc(out, func(d difference) bool { return d.slurm == d.berth || closeInTime(d) })
}

// closeInTime reports whether the lines of d differ only in times that are close.
func closeInTime(d difference) bool {
	a, b := []line{{d.where, d.slurm}}, []line{{d.where, d.berth}}
	alignTimes(a, b)
	return a[0] == b[0]
}

var keyPattern = regexp.MustCompile(`^ *([A-Z][A-Za-z0-9/:]*)=`)

// keyOf returns the key of a line KEY=VALUE, or "".
func keyOf(text string) string {
	if m := keyPattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var (
	maskDigits = regexp.MustCompile(`\d+`)
	onlyDigits = regexp.MustCompile(`^\d+$`)
	maskSpaces = regexp.MustCompile(`\s+`)
)

// mask replaces the values of a call, numbers and runs of spaces in a line, so that lines
// of the same cause are equal.
func mask(text string, c *call) string {
	var values []string
	for _, p := range c.parts {
		if len(p.value) > 1 && !onlyDigits.MatchString(p.value) {
			values = append(values, p.value)
		}
	}
	sort.Slice(values, func(i, j int) bool { return len(values[i]) > len(values[j]) })
	key := keyOf(text)
	text = strings.TrimPrefix(text, key)
	for _, v := range values {
		text = regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(v)+`(\W|$)`).ReplaceAllString(text, "${1}V${2}")
	}
	return key + maskSpaces.ReplaceAllString(maskDigits.ReplaceAllString(text, "N"), " ")
}

// signature returns a text that is the same for differences of the same cause. Rows of a
// listing depend on its columns: they are named by the options.
func (d *difference) signature(c *call) string {
	if c.kind == query && d.where == "out" && c.command != "scontrol" {
		var names []string
		for _, p := range c.parts {
			if p.name != "" {
				names = append(names, strings.ToLower(strings.Join(append([]string{p.name}, p.value), "=")))
			}
		}
		slices.Sort(names)
		return c.command + " out " + strings.Join(names, " ")
	}
	command := c.command
	if strings.HasPrefix(d.where, "show") || d.where == "err" {
		command = "" // records and messages of jobs are the same for all commands
	}
	return strings.TrimSpace(command + " " + d.where + ": " + mask(d.slurm, c) + " ≠ " + mask(d.berth, c))
}
