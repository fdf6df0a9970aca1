// Package keyvalue reads the command language that scontrol, sacctmgr and
// sreport share: lines of words with Slurm's quoting, words of the form
// KEY=VALUE, keywords that may be abbreviated, and tables that say what each
// keyword sets. Prompt reads such lines one after another.
package keyvalue

import (
	"slices"
	"strings"
)

// Fields splits a line at white space. Single or double quotes keep white space
// in a word and are removed; an empty pair of quotes is an empty word.
func Fields(line string) []string {
	return Split(line, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) })
}

// Split splits text at the separators outside of quotes, and removes the
// quotes. Several separators in a row count as one.
func Split(text string, isSeparator func(rune) bool) []string {
	var words []string
	var word strings.Builder
	var quote rune // the quote that is open; 0: none
	started := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, started = r, true
		case quote == 0 && isSeparator(r):
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// Abbreviates reports whether word is name, or a prefix of name of at least
// least letters, in upper or lower case.
func Abbreviates(word, name string, least int) bool {
	return len(word) >= least && len(word) <= len(name) && strings.EqualFold(word, name[:len(word)])
}

// Unique returns the one of names that word spells in full or abbreviates to at
// least least letters, or "" if there is none or word fits several.
func Unique(word string, names []string, least int) string {
	var found []string
	for _, name := range names {
		if strings.EqualFold(word, name) {
			return name
		}
		if Abbreviates(word, name, least) {
			found = append(found, name)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

// Operators of a Pair.
const (
	Assign = "="
	Add    = "+"
	Remove = "-"
)

// Pair is a word of a command: KEY=VALUE, KEY+=VALUE or KEY-=VALUE, or a word
// without "=", which is a Value without a Key.
type Pair struct {
	Key, Op, Value string
	Text           string // the word as it was typed
}

// Parse reads one word. Quotes around the value are removed.
func Parse(word string) Pair {
	key, value, found := strings.Cut(word, "=")
	if !found {
		return Pair{Op: Assign, Value: unquote(word), Text: word}
	}
	p := Pair{Key: key, Op: Assign, Value: unquote(value), Text: word}
	if bare, ok := strings.CutSuffix(key, Add); ok {
		p.Key, p.Op = bare, Add
	} else if bare, ok := strings.CutSuffix(key, Remove); ok {
		p.Key, p.Op = bare, Remove
	}
	return p
}

func unquote(text string) string { return strings.Trim(text, `"'`) }

// ParseAll reads the words of a command.
func ParseAll(words []string) []Pair {
	var pairs []Pair
	for _, w := range words {
		pairs = append(pairs, Parse(w))
	}
	return pairs
}

// List splits the value at commas. Empty items and repetitions are left out.
func (p Pair) List() []string {
	var items []string
	for item := range strings.SplitSeq(p.Value, ",") {
		if item = strings.TrimSpace(item); item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

// LowerList is List with all items in lower case.
func (p Pair) LowerList() []string {
	items := p.List()
	for i := range items {
		items[i] = strings.ToLower(items[i])
	}
	return items
}

// Change returns list after the operation: replaced by items, with items added
// that it lacks, or without items. It does not modify list.
func Change(list []string, op string, items []string) []string {
	var changed []string
	switch op {
	case Assign:
		return items
	case Add:
		changed = append(changed, list...)
		for _, item := range items {
			if !slices.Contains(changed, item) {
				changed = append(changed, item)
			}
		}
		return changed
	}
	for _, item := range list {
		if !slices.Contains(items, item) {
			changed = append(changed, item)
		}
	}
	return changed
}
