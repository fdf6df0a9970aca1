package bounds

import "reflect"

// Rule bounds one field of a type. Which members count depends on the field's
// kind: numbers have Min and Max, texts Bytes, lists and maps Items and, where
// their elements are texts or numbers, the elements' members as well. What is
// false, empty or nil satisfies every rule: it means "not given".
type Rule struct {
	Min, Max int64
	// Bytes is the length of a text, or of each text in a list or map. Required:
	// it may not be empty, though it is the zero value.
	Bytes    int
	Required bool
	// OneOf are the values that a text, or each text in a list, may have beside "".
	OneOf []string
	// Items is the number of elements of a list, or keys of a map; KeyBytes the
	// length of each key; Total the bytes of all texts and keys together, each
	// with one more for what separates them. Unique: no element is there twice.
	Items, KeyBytes, Total int
	Unique                 bool
	// Unchecked: others decide what is right (a template, a time, a struct of
	// Kubernetes), or only the scheduler writes it.
	Unchecked bool
	// Text is what Slurm says of a value beyond the bound; empty: it has no words.
	Text string
}

// Text bounds the length of a text in bytes.
func Text(bytes int) Rule { return Rule{Bytes: bytes, Text: TooLong} }

// Number bounds a number, ends included.
func Number(least, most int64) Rule { return Rule{Min: least, Max: most} }

// OneOf lists what a text may be beside "".
func OneOf(values ...string) Rule {
	most := 0
	for _, v := range values {
		most = max(most, len(v))
	}
	return Rule{OneOf: values, Bytes: most}
}

// List bounds a list of texts. Of structs see Structs.
func List(items, bytes int) Rule { return Rule{Items: items, Bytes: bytes, Text: TooLong} }

// Numbers bounds a list of numbers.
func Numbers(items int, least, most int64) Rule {
	return Rule{Items: items, Min: least, Max: most, Text: TooLong}
}

// Structs bounds a list of structs, whose type has rules of its own.
func Structs(items int) Rule { return Rule{Items: items, Text: TooLong} }

// Map bounds a map of texts.
func Map(items, keyBytes, bytes int) Rule {
	return Rule{Items: items, KeyBytes: keyBytes, Bytes: bytes, Text: TooLong}
}

// Counts bounds a map of numbers.
func Counts(items, keyBytes int, least, most int64) Rule {
	return Rule{Items: items, KeyBytes: keyBytes, Min: least, Max: most, Text: TooLong}
}

// Unchecked is the rule of a field that is bounded elsewhere.
func Unchecked() Rule { return Rule{Unchecked: true} }

// Say returns the rule with other words of Slurm's.
func (r Rule) Say(text string) Rule { r.Text = text; return r }

// Distinct returns the rule with no element allowed twice.
func (r Rule) Distinct() Rule { r.Unique = true; return r }

// Within returns the rule with a bound of all texts together.
func (r Rule) Within(bytes int) Rule { r.Total = bytes; return r }

// Set returns the rule of a text that may not be empty.
func (r Rule) Set() Rule { r.Required = true; return r }

// Rules are the rules of the fields of struct types, by JSON name. Fields that
// are structs, or pointers to them, need none: their type has its own. Booleans
// need none either.
type Rules map[reflect.Type]map[string]Rule

// Of returns the rules of T's fields within table.
func Of[T any](fields map[string]Rule) Rules { return Rules{reflect.TypeFor[T](): fields} }

// Join returns one table of all.
func Join(tables ...Rules) Rules {
	all := Rules{}
	for _, t := range tables {
		for k, v := range t {
			all[k] = v
		}
	}
	return all
}
