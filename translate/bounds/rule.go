package bounds

import "reflect"

// Rule bounds one field of a type. Which members apply depends on the kind of the
// field: Min and Max to numbers, Bytes to texts, Items to lists and maps, together
// with the members for the kind of their elements. A value that is false, empty or
// nil satisfies every rule: it means that the field is not given.
type Rule struct {
	Min, Max int64
	// Bytes is the length of a text, or of each text in a list or map. Required: an
	// empty text is not permitted.
	Bytes    int
	Required bool
	// OneOf lists the values other than "" of a text, or of each text in a list.
	OneOf []string
	// Items is the number of elements of a list or of keys of a map, KeyBytes the
	// length of each key, Total the bytes of all texts and keys with a separator
	// each. Unique: no element occurs twice.
	Items, KeyBytes, Total int
	Unique                 bool
	// Unchecked: the field is validated elsewhere (a template, a time, a Kubernetes
	// struct), or only the scheduler writes it.
	Unchecked bool
	// Text is Slurm's message for a value beyond the bound; empty: it has none.
	Text string
}

// Text returns the rule for a text of at most the given number of bytes.
func Text(bytes int) Rule { return Rule{Bytes: bytes, Text: TooLong} }

// Number returns the rule for a number from least to most, inclusive.
func Number(least, most int64) Rule { return Rule{Min: least, Max: most} }

// OneOf returns the rule for a text that is one of the values or empty.
func OneOf(values ...string) Rule {
	most := 0
	for _, v := range values {
		most = max(most, len(v))
	}
	return Rule{OneOf: values, Bytes: most}
}

// List returns the rule for a list of texts.
func List(items, bytes int) Rule { return Rule{Items: items, Bytes: bytes, Text: TooLong} }

// Numbers returns the rule for a list of numbers.
func Numbers(items int, least, most int64) Rule {
	return Rule{Items: items, Min: least, Max: most, Text: TooLong}
}

// Structs returns the rule for a list of structs, whose type has rules of its own.
func Structs(items int) Rule { return Rule{Items: items, Text: TooLong} }

// Map returns the rule for a map of texts.
func Map(items, keyBytes, bytes int) Rule {
	return Rule{Items: items, KeyBytes: keyBytes, Bytes: bytes, Text: TooLong}
}

// Counts returns the rule for a map of numbers.
func Counts(items, keyBytes int, least, most int64) Rule {
	return Rule{Items: items, KeyBytes: keyBytes, Min: least, Max: most, Text: TooLong}
}

// Unchecked returns the rule for a field that is validated elsewhere.
func Unchecked() Rule { return Rule{Unchecked: true} }

// WithText returns the rule with another message of Slurm's.
func (r Rule) WithText(text string) Rule { r.Text = text; return r }

// Distinct returns the rule with the condition that no element occurs twice.
func (r Rule) Distinct() Rule { r.Unique = true; return r }

// Within returns the rule with a bound on the bytes of all texts together.
func (r Rule) Within(bytes int) Rule { r.Total = bytes; return r }

// NotEmpty returns the rule with the condition that the text is not empty.
func (r Rule) NotEmpty() Rule { r.Required = true; return r }

// Rules are the rules of the fields of struct types, by JSON name. Fields that are
// structs or pointers to structs need none, because their type has rules; booleans
// need none either.
type Rules map[reflect.Type]map[string]Rule

// Of returns a table with the rules of T's fields.
func Of[T any](fields map[string]Rule) Rules { return Rules{reflect.TypeFor[T](): fields} }

// Join returns one table with the rules of all tables.
func Join(tables ...Rules) Rules {
	all := Rules{}
	for _, t := range tables {
		for k, v := range t {
			all[k] = v
		}
	}
	return all
}
