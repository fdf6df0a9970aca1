package keyvalue

// Form is the kind of words that a Keyword accepts.
type Form int

const (
	// Assignment is a word with "=": KEY=VALUE.
	Assignment Form = iota
	// Word is a word without "=".
	Word
	// Either is both: a word without "=" has an empty value.
	Either
)

// Keyword is one keyword of a command, and what it sets in a T.
type Keyword[T any] struct {
	Name  string // spelled in full
	Least int    // letters that are enough of it; 0: all of them
	Form  Form
	Set   func(T, Pair) error
}

// Table is the keywords of a command. Of several that a word abbreviates, the
// first counts, as in Slurm.
type Table[T any] []Keyword[T]

// Find returns the keyword that the word names, or nil.
func (t Table[T]) Find(p Pair) *Keyword[T] {
	for i := range t {
		if t[i].names(p) {
			return &t[i]
		}
	}
	return nil
}

// Set applies the word to target. It reports whether the table has a keyword
// for it; the error is that of the keyword.
func (t Table[T]) Set(target T, p Pair) (known bool, err error) {
	k := t.Find(p)
	if k == nil {
		return false, nil
	}
	if p.Key == "" && k.Form == Either {
		p.Key, p.Value = p.Value, ""
	}
	return true, k.Set(target, p)
}

func (k *Keyword[T]) names(p Pair) bool {
	word := p.Key
	switch {
	case k.Form == Word && p.Key != "", k.Form == Assignment && p.Key == "":
		return false
	case p.Key == "":
		word = p.Value
	}
	if k.Name == "" {
		return true
	}
	least := k.Least
	if least == 0 {
		least = len(k.Name)
	}
	return Abbreviates(word, k.Name, least)
}

// Any returns a Keyword that reads every word without "=". It belongs at the
// end of a table, after the keywords of that form.
func Any[T any](set func(T, Pair) error) Keyword[T] { return Keyword[T]{Form: Word, Set: set} }

// Ignored is the setter of a keyword that has no effect.
func Ignored[T any](T, Pair) error { return nil }
