// Package directive parses the #SBATCH lines of a batch script by the rules of
// sbatch 22.05.8. It is pure and does not change the script.
package directive

import (
	"bytes"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// Marker starts a directive. It must be at the beginning of its line, and a blank
// after it is optional.
const Marker = "#SBATCH"

// Line is one directive, split into words.
type Line struct {
	Number int // of the line in the script, from 1
	Words  []string
	// Cut: a comment starts within the last word and cuts it short.
	Cut bool
	// End is the empty word in quotes, or the separator, that ended the directive before
	// its line ended. Ignored: it is a separator, which separates nothing there, or words
	// follow it.
	End     string
	Ignored bool
	// Separator: the following lines belong to the next component of a
	// heterogeneous job. Words is the separator as it was written, and the ignored
	// words after it.
	Separator bool
}

// blanks are what separates words within a line.
const blanks = " \t\v\f\r"

// EndsAtSeparator reports whether End is a separator.
func (l Line) EndsAtSeparator() bool { return isSeparator(l.End) }

// OldSeparator is the deprecated name of the separator "hetjob".
const OldSeparator = "packjob"

// isSeparator reports whether the text after Marker separates components: hetjob
// or packjob in either case, at the end of the line or before a blank. Quotes
// have no meaning here.
func isSeparator(text string) bool {
	text = strings.TrimLeft(text, blanks)
	for _, name := range []string{"hetjob", OldSeparator} {
		if len(text) < len(name) || !strings.EqualFold(text[:len(name)], name) {
			continue
		}
		if len(text) == len(name) || isBlank(text[len(name)]) {
			return true
		}
	}
	return false
}

// Result holds the directives of a script.
type Result struct {
	Lines []Line
	// Foreign is the first marker of another batch system (#PBS, #BSUB), whose
	// directives Slurm would translate; empty: none.
	Foreign string
}

// Check returns an error for a text that Slurm does not accept as a batch script: an
// empty text, a first line without #!, NUL bytes, DOS line breaks.
func Check(script []byte) error {
	switch {
	case len(script) == 0:
		return slurmerr.New(slurmerr.Refused, "Batch script is empty!")
	case len(bytes.TrimLeft(script, " \t\n\v\f\r")) == 0:
		return slurmerr.New(slurmerr.Refused, "Batch script contains only whitespace!")
	case !bytes.HasPrefix(script, []byte("#!")):
		return slurmerr.New(slurmerr.Refused, "This does not look like a batch script.  The first\n"+
			"line must start with #! followed by the path to an interpreter.\nFor instance: #!/bin/sh")
	case bytes.IndexByte(script, 0) >= 0:
		return slurmerr.New(slurmerr.Refused,
			"The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'.")
	case bytes.Contains(script, []byte("\r\n")):
		return slurmerr.New(slurmerr.Refused,
			"Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n).").
			Hint("convert it: sed -i 's/\\r$//' SCRIPT")
	}
	return nil
}

// usualLines is the number of directives that few scripts exceed.
const usualLines = 16

// Read returns the directives of script in order. They end at the first line that
// is neither empty nor a comment. name is the script's name, for errors.
func Read(name string, script []byte) (Result, error) {
	var r Result
	number := 0
	for line := range bytes.SplitSeq(script, []byte("\n")) {
		number++
		if bytes.HasPrefix(line, []byte(Marker)) && r.Lines == nil {
			r.Lines = make([]Line, 0, usualLines)
		}
		text := string(line)
		switch {
		case strings.HasPrefix(text, Marker) && isSeparator(text[len(Marker):]):
			r.Lines = append(r.Lines, Line{Number: number, Words: strings.Fields(text[len(Marker):]), Separator: true})
		case strings.HasPrefix(text, Marker):
			l, bad := split(text[len(Marker):])
			if bad != "" {
				return Result{}, lineError(name, number, bad)
			}
			if l.Number = number; len(l.Words) > 0 || l.Ignored {
				r.Lines = append(r.Lines, l)
			}
		case r.Foreign == "" && strings.HasPrefix(text, "#PBS"):
			r.Foreign = "#PBS"
		case r.Foreign == "" && strings.HasPrefix(text, "#BSUB"):
			r.Foreign = "#BSUB"
		}
		if first := strings.TrimLeft(text, blanks); first != "" && first[0] != '#' {
			break
		}
	}
	return r, nil
}

// lineError returns the error about a line that cannot be split: rest has a quote that is
// not closed, or its first word starts with a colon.
func lineError(name string, number int, rest string) error {
	if strings.HasPrefix(strings.TrimLeft(rest, blanks), ":") {
		return slurmerr.Newf(slurmerr.Fatal, "%s: line %d: Unexpected `:` in [%s]", name, number, rest)
	}
	quote := byte('"')
	if i := strings.IndexAny(rest, `"'`); i >= 0 {
		quote = rest[i]
	}
	return slurmerr.Newf(slurmerr.Fatal, "%s: line %d: Unmatched `%c` in [%s]", name, number, quote, rest)
}

// split splits a directive into words by Slurm's rules, which differ from those of
// a shell: a backslash quotes the next character inside either kind of quotes too,
// but not a blank outside of quotes, and an unquoted # starts a comment even within
// a word. An empty word, or a separator that is not the first word, ends the directive.
// If a quote is not closed, or a word starts with a colon, bad is the text from the start
// of that word.
func split(text string) (l Line, bad string) {
	text = strings.TrimLeft(text, blanks)
	for text != "" {
		word, after, comment, ok := nextWord(text)
		if !ok {
			return Line{}, text
		}
		if word == "" && comment {
			break
		}
		if word == "" || len(l.Words) > 0 && isSeparator(text) {
			l.End = strings.TrimSpace(text[:len(text)-len(after)])
			after = strings.TrimLeft(after, blanks)
			l.Ignored = word != "" || after != "" && after[0] != '#'
			break
		}
		l.Words = append(l.Words, word)
		text, l.Cut = after, comment
	}
	return l, ""
}

// nextWord returns the first word of text and the text after it, which is empty at
// a comment. ok is false if a quote is not closed or the word starts with a colon.
func nextWord(text string) (word, after string, comment, ok bool) {
	var b strings.Builder
	i := 0
	for i < len(text) && isBlank(text[i]) {
		i++
	}
	quote := byte(0)
	escaped := false
	start := i
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && isBlank(c):
			return b.String(), text[i:], false, true
		case escaped:
			b.WriteByte(c)
			escaped = false
		case c == '\\':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return b.String(), "", true, true
		case c == ':' && i == start:
			return "", text, false, false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", false, quote == 0
}

func isBlank(c byte) bool { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 }

// String returns a line for which Read returns the same words.
func (l Line) String() string {
	var b strings.Builder
	b.WriteString(Marker)
	if l.Separator {
		return Marker + " " + strings.Join(l.Words, " ")
	}
	for _, w := range l.Words {
		b.WriteString(" \"")
		for i := range len(w) {
			if w[i] == '"' || w[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(w[i])
		}
		b.WriteByte('"')
	}
	return b.String()
}
