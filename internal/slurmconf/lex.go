package slurmconf

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
)

// maxInclude is the maximum depth of nested includes.
const maxInclude = 16

// line is a logical line: continued lines joined, comments removed.
type line struct {
	file   string
	number int // of its first physical line
	text   string
}

// pair is one Key=Value of a line.
type pair struct {
	key, value string
	line
}

// pairForm matches a Key=Value at the start of a string. There may be blanks around the
// equals sign; a value with blanks is in double quotes.
var pairForm = regexp.MustCompile(`^\s*([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)`)

// lines returns the logical lines of a file, with those of included files in place of
// the include lines. depth is the number of files that include this one.
func (p *parser) lines(file string, depth int) ([]line, error) {
	data, err := p.read(file)
	if err != nil {
		return nil, err
	}
	var all []line
	for _, l := range logical(file, data) {
		included, ok := includes(l.text)
		if !ok {
			all = append(all, l)
			continue
		}
		included = strings.ReplaceAll(included, "%c", p.clusterName(all))
		if depth == maxInclude {
			return nil, l.errorf("files include one another: more than %d levels", maxInclude)
		}
		if !filepath.IsAbs(included) {
			included = filepath.Join(filepath.Dir(file), included)
		}
		more, err := p.lines(included, depth+1)
		if err != nil {
			return nil, l.wrap(err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// clusterName returns the ClusterName that the lines set, or else the last one set
// before them.
func (p *parser) clusterName(all []line) string {
	for _, l := range all {
		if m := pairForm.FindStringSubmatch(l.text); m != nil && strings.EqualFold(m[1], "ClusterName") {
			p.cluster = m[2] + m[3]
		}
	}
	return p.cluster
}

// logical splits a file into logical lines, without empty ones.
func logical(file string, data []byte) []line {
	var all []line
	var text strings.Builder
	first, number := 0, 0
	for raw := range bytes.Lines(data) {
		number++
		if text.Len() == 0 && first == 0 {
			first = number
		}
		part := strings.TrimRight(uncomment(string(raw)), " \t\r\n")
		if rest, more := strings.CutSuffix(part, `\`); more {
			text.WriteString(rest)
			continue
		}
		text.WriteString(part)
		all = appendLine(all, line{file, first, text.String()})
		text.Reset()
		first = 0
	}
	return appendLine(all, line{file, first, text.String()})
}

func appendLine(all []line, l line) []line {
	if l.text = strings.TrimSpace(l.text); l.text == "" {
		return all
	}
	return append(all, l)
}

// uncomment removes the comment of a line, and the backslash of \#.
func uncomment(s string) string {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '#':
			return s[:i]
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '#':
			s = s[:i] + s[i+1:]
		}
	}
	return s
}

// includes returns the path in an include line; ok is false for other lines.
func includes(text string) (path string, ok bool) {
	const word = "include"
	if len(text) <= len(word) || !strings.EqualFold(text[:len(word)], word) {
		return "", false
	}
	rest := strings.TrimLeft(text[len(word):], " \t")
	if rest == text[len(word):] || strings.HasPrefix(rest, "=") {
		return "", false
	}
	return rest, true
}

// pairs splits a line into its Key=Value pairs.
func pairs(l line) ([]pair, error) {
	var all []pair
	for rest := l.text; rest != ""; {
		m := pairForm.FindStringSubmatch(rest)
		if m == nil {
			return nil, l.errorf("invalid text %q, expected Key=Value", shorten(rest))
		}
		all = append(all, pair{key: m[1], value: m[2] + m[3], line: l})
		rest = rest[len(m[0]):]
	}
	return all, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
