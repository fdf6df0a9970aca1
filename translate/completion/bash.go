package completion

import (
	"strings"
	"unicode/utf8"
)

// BashLine is a command line from bash, split into words.
type BashLine struct {
	Words []string // without quotes; the last one is at the cursor
	// quote is the open quote at the cursor; 0: none. kept is the part of the last
	// word that readline does not replace: the text up to the last break character
	// or open quote.
	quote byte
	kept  string
}

// SplitBash splits a command line up to the cursor. breaks is COMP_WORDBREAKS. The text
// before the last ; & | or bracket belongs to another command. An empty line has
// one empty word.
func SplitBash(line, breaks string) BashLine {
	s := splitter{line: line, breaks: breaks}
	for s.at < len(line) {
		s.step()
	}
	start := s.afterBreak
	if s.quote != 0 {
		start = s.afterQuote
	}
	return BashLine{Words: append(s.words, s.word.String()), quote: s.quote, kept: s.word.String()[:start]}
}

type splitter struct {
	line, breaks string
	at           int

	words  []string
	word   strings.Builder // without quotes
	inWord bool            // there is a word, possibly an empty one in quotes
	quote  byte
	// Offsets in word: after the last break character outside of quotes, and after the
	// open quote.
	afterBreak, afterQuote int
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
		s.inWord = true
	case c == '\'' || c == '"':
		s.quote, s.inWord = c, true
		s.afterQuote = s.word.Len()
	case c == ' ' || c == '\t':
		s.end()
	case strings.IndexByte(";&|()\n`", c) >= 0:
		s.end()
		s.words = nil
	default:
		s.word.WriteByte(c)
		s.inWord = true
		if strings.IndexByte(s.breaks, c) >= 0 {
			s.afterBreak = s.word.Len()
		}
	}
}

// quoted processes a character inside quotes.
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
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord, s.afterBreak = false, 0
}

// Reply returns the text that bash inserts to complete the last word to text: without
// the kept part, and quoted like the word. ok is false if that is impossible.
func (l *BashLine) Reply(text string) (reply string, ok bool) {
	rest, ok := strings.CutPrefix(text, l.kept)
	if !ok {
		return "", false
	}
	switch l.quote {
	case '\'':
		return strings.ReplaceAll(rest, "'", `'\''`), true
	case '"':
		// An exclamation mark expands history even after a backslash.
		return doubleQuoted.Replace(rest), !strings.Contains(rest, "!")
	}
	return QuoteBash(rest), true
}

var doubleQuoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// plainBytes need no quoting in the middle of a word.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// QuoteBash quotes special characters of a shell with backslashes. The text must not
// contain control characters.
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

// Unquote removes the quotes of a word, which may end inside one, like the word at the
// cursor in fish.
func Unquote(word string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch {
		case c == '\\' && i+1 < len(word) && (quote == 0 || word[i+1] == quote || word[i+1] == '\\' ||
			quote == '"' && word[i+1] == '$'):
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
