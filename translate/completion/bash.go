package completion

import (
	"strings"
	"unicode/utf8"
)

// BashLine is a command line as bash hands it over, taken apart.
type BashLine struct {
	Words []string // without quotes; the last is the one at the cursor
	// quote is the open quote at the cursor, 0: none. kept is the part of the
	// last word that stays as it was typed: readline replaces what follows the
	// last of its break characters, or an open quote.
	quote byte
	kept  string
}

// SplitBash takes a command line up to the cursor apart. breaks is
// COMP_WORDBREAKS. What stands ahead of the last ; & | or bracket is another
// command's. A line in which nothing has been typed gives one empty word.
func SplitBash(line, breaks string) BashLine {
	s := splitter{line: line, breaks: breaks}
	for s.at < len(line) {
		s.step()
	}
	start := s.broken
	if s.quote != 0 {
		start = s.opened
	}
	return BashLine{Words: append(s.words, s.word.String()), quote: s.quote, kept: s.word.String()[:start]}
}

type splitter struct {
	line, breaks string
	at           int

	words []string
	word  strings.Builder // without quotes
	some  bool            // there is a word, if only an empty one in quotes
	quote byte
	// Places in word: behind the last break character, and where the open quote
	// began. Characters in quotes break nothing.
	broken, opened int
}

func (s *splitter) step() {
	c := s.line[s.at]
	s.at++
	switch {
	case s.quote != 0:
		s.quoted(c)
	case c == '\\':
		if s.at < len(s.line) {
			_, n := utf8.DecodeRuneInString(s.line[s.at:])
			if s.line[s.at] != '\n' {
				s.word.WriteString(s.line[s.at : s.at+n])
			}
			s.at += n
		}
		s.some = true
	case c == '\'' || c == '"':
		s.quote, s.some = c, true
		s.opened = s.word.Len()
	case c == ' ' || c == '\t':
		s.end()
	case strings.IndexByte(";&|()\n`", c) >= 0:
		s.end()
		s.words = nil
	default:
		s.word.WriteByte(c)
		s.some = true
		if strings.IndexByte(s.breaks, c) >= 0 {
			s.broken = s.word.Len()
		}
	}
}

// quoted takes a character inside quotes.
func (s *splitter) quoted(c byte) {
	switch {
	case c == s.quote:
		s.quote = 0
	case c == '\\' && s.quote == '"' && s.at < len(s.line) && strings.IndexByte("$`\"\\\n", s.line[s.at]) >= 0:
		if s.line[s.at] != '\n' {
			s.word.WriteByte(s.line[s.at])
		}
		s.at++
	default:
		s.word.WriteByte(c)
	}
}

func (s *splitter) end() {
	if s.some {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.some, s.broken = false, 0
}

// Reply is text, a whole word, as bash is to insert it: without what stays, and
// quoted as the word is. ok is false where it cannot be written so.
func (l *BashLine) Reply(text string) (reply string, ok bool) {
	rest, ok := strings.CutPrefix(text, l.kept)
	if !ok {
		return "", false
	}
	switch l.quote {
	case '\'':
		return strings.ReplaceAll(rest, "'", `'\''`), true
	case '"':
		// An exclamation mark is history even behind a backslash.
		return doubleQuoted.Replace(rest), !strings.Contains(rest, "!")
	}
	return QuoteBash(rest), true
}

var doubleQuoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// plainBytes need no quoting in the middle of a word.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// QuoteBash puts a backslash ahead of whatever means something to a shell. The
// text must not hold control characters.
func QuoteBash(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 && strings.IndexByte(plainBytes, byte(r)) < 0 {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Unquote takes the quotes off a word that may end inside one, as fish shows
// the word at the cursor.
func Unquote(word string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch {
		case c == '\\' && i+1 < len(word) && (quote == 0 || word[i+1] == quote || word[i+1] == '\\' || quote == '"' && word[i+1] == '$'):
			i++
			b.WriteByte(word[i])
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote && quote != 0:
			quote = 0
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
