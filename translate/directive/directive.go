// Package directive reads the #SBATCH lines of a batch script, by Slurm's
// rules as asked of sbatch 22.05.8. It is pure, and leaves the script as it is.
package directive

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// Marker begins a directive. Nothing may stand before it on its line; what
// follows needs no blank between.
const Marker = "#SBATCH"

// Line is one directive, split into words.
type Line struct {
	Number int // of the line in the script, from 1
	Words  []string
	// Cut: a comment begins within the last word, which is all of it that counts.
	Cut bool
	// Separator: what follows is of the next component of a heterogeneous job.
	// Words then holds the separator as it was written, and what follows it on
	// the line, which nobody reads.
	Separator bool
}

// OldSeparator is the name that separators had before "hetjob".
const OldSeparator = "packjob"

// separator tells whether the text behind Marker parts components: hetjob or
// packjob in any case, by itself or ahead of a blank. Quotes do not count.
func separator(text string) bool {
	text = strings.TrimLeft(text, " \t\v\f\r")
	for _, name := range []string{"hetjob", OldSeparator} {
		if len(text) >= len(name) && strings.EqualFold(text[:len(name)], name) && (len(text) == len(name) || blank(text[len(name)])) {
			return true
		}
	}
	return false
}

// Result is what the comment lines at the head of a script say.
type Result struct {
	Lines []Line
	// Foreign is the first marker of another batch system (#PBS, #BSUB), with
	// which lines begin that Slurm would translate; empty: none.
	Foreign string
}

// Check refuses what Slurm does not take for a batch script: the empty text, a
// first line without #!, NUL bytes, DOS line ends.
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
		return slurmerr.New(slurmerr.Refused, "The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'.")
	case bytes.Contains(script, []byte("\r\n")):
		return slurmerr.New(slurmerr.Refused, "Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n).").
			Hint("convert it: sed -i 's/\\r$//' SCRIPT")
	}
	return nil
}

// Read collects the directives of script, in order. They end at the first line
// that is neither empty nor a comment. name is the script's, for messages.
func Read(name string, script []byte) (Result, error) {
	var r Result
	number := 0
	for line := range bytes.SplitSeq(script, []byte("\n")) {
		number++
		text := string(line)
		switch {
		case strings.HasPrefix(text, Marker) && separator(text[len(Marker):]):
			r.Lines = append(r.Lines, Line{number, strings.Fields(text[len(Marker):]), false, true})
		case strings.HasPrefix(text, Marker):
			words, rest, cut := split(text[len(Marker):])
			if rest != "" {
				return Result{}, unmatched(name, number, rest)
			}
			if len(words) > 0 {
				r.Lines = append(r.Lines, Line{number, words, cut, false})
			}
		case r.Foreign == "" && strings.HasPrefix(text, "#PBS"):
			r.Foreign = "#PBS"
		case r.Foreign == "" && strings.HasPrefix(text, "#BSUB"):
			r.Foreign = "#BSUB"
		}
		if first := strings.TrimLeft(text, " \t\v\f\r"); first != "" && first[0] != '#' {
			break
		}
	}
	return r, nil
}

func unmatched(name string, number int, rest string) error {
	quote := byte('"')
	if i := strings.IndexAny(rest, `"'`); i >= 0 {
		quote = rest[i]
	}
	return slurmerr.Newf(slurmerr.Fatal, "%s: line %d: Unmatched `%c` in [%s]", name, number, quote, rest)
}

// unlikeShell are the characters that Slurm reads otherwise than a shell does:
// the backslash, the comment sign, and blanks that are none to a shell.
const unlikeShell = "\\#\v\f\r"

// split cuts a directive into words. Where no character is among unlikeShell,
// these are a shell's words, but that empty ones are dropped.
func split(text string) (words []string, rest string, cut bool) {
	if !strings.ContainsAny(text, unlikeShell) {
		if words, err := shellquote.Split(text); err == nil {
			return slices.DeleteFunc(words, func(w string) bool { return w == "" }), "", false
		}
	}
	return splitAsSlurm(text)
}

// splitAsSlurm cuts any directive into words. Blanks part words; quotes of
// either kind join; a backslash keeps the next character, inside every quote,
// but not a blank outside of them; an unquoted # begins a comment. Empty words
// are dropped. Of an unclosed quote, rest is the text from where its word began;
// cut is true where a comment begins within a word.
func splitAsSlurm(text string) (words []string, rest string, cut bool) {
	text = strings.TrimLeft(text, " \t\v\f\r")
	for text != "" {
		word, after, comment, ok := next(text)
		if !ok {
			return nil, text, false
		}
		if word != "" {
			words = append(words, word)
		}
		text, cut = after, comment && word != ""
	}
	return words, "", cut
}

// next reads one word; after is empty at the end or at a comment.
func next(text string) (word, after string, comment, ok bool) {
	var b strings.Builder
	i := 0
	for i < len(text) && blank(text[i]) {
		i++
	}
	quote := byte(0)
	escaped := false
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && blank(c):
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
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", false, quote == 0
}

func blank(c byte) bool { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 }

// String writes a line so that Read gives the same words.
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
