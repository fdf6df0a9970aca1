// Package dump encodes rows of jobs, nodes, partitions and reservations as the JSON and
// YAML of the listing commands' --json and --yaml: in the form of Slurm 22.05, or of the
// data parsers of later releases, in which a number has a member "set". The encoder is
// written by hand for speed (docs/decisions). The package is pure.
package dump

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/berth-hpc/berth/internal/printable"
)

// Syntax is the syntax of a document.
type Syntax int

// The syntaxes.
const (
	JSON Syntax = iota
	YAML
)

// String returns the name of the option for the syntax.
func (s Syntax) String() string {
	if s == YAML {
		return "yaml"
	}
	return "json"
}

// writer appends members and items to b. Keys are empty in arrays.
type writer struct {
	b      []byte
	syntax Syntax
	modern bool   // the form of the data parsers
	parser string // its version; "": the form of 22.05
	depth  int
	column int  // YAML: of the members of the innermost object
	empty  bool // the innermost object or array has no members yet
	dash   bool // YAML without tags: at the start of an item of an array
}

// tagged reports whether every value has a tag with its type, as in the YAML of 22.05.
func (w *writer) tagged() bool { return w.syntax == YAML && !w.modern }

func (w *writer) indent() {
	for range w.depth {
		w.b = append(w.b, "  "...)
	}
}

// key starts a member or an item, whose value has the given tag.
func (w *writer) key(key, tag string) {
	if w.syntax == YAML {
		w.yamlKey(key)
		if w.tagged() {
			w.b = append(append(w.b, " !!"...), tag...)
		}
		return
	}
	if !w.empty {
		w.b = append(w.b, ',')
	}
	w.empty = false
	if w.depth > 0 {
		w.b = append(w.b, '\n')
		w.indent()
	}
	if key != "" {
		w.b = append(w.b, '"')
		w.b = append(w.b, key...)
		w.b = append(w.b, `": `...)
	}
}

// object writes an object with the members that members writes.
func (w *writer) object(key string, members func()) {
	if w.syntax == YAML {
		w.yamlGroup(key, "map", "{}", members)
		return
	}
	w.group(key, '{', '}', members)
}

// array writes an array with the items that items writes.
func (w *writer) array(key string, items func()) {
	if w.syntax == YAML {
		w.yamlGroup(key, "seq", "[]", items)
		return
	}
	w.group(key, '[', ']', items)
}

func (w *writer) group(key string, open, end byte, inside func()) {
	w.key(key, "")
	w.depth++
	w.empty = true
	w.b = append(w.b, open)
	inside()
	w.depth--
	if !w.empty {
		w.b = append(w.b, '\n')
		w.indent()
	}
	w.empty = false
	w.b = append(w.b, end)
}

func (w *writer) text(key, s string) {
	switch {
	case w.tagged() && s == "":
		w.null(key)
	case w.tagged():
		w.key(key, "str")
		w.b = AppendYAMLText(append(w.b, ' '), s)
	default:
		w.scalar(key, "str")
		w.b = appendText(w.b, s)
	}
}

// scalar writes the key of a scalar value.
func (w *writer) scalar(key, tag string) {
	w.key(key, tag)
	if w.syntax == YAML {
		w.b = append(w.b, ' ')
	}
}

// appendText appends s as a JSON string, which is also valid YAML.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil { // impossible for strings
				text = []byte(`""`)
			}
			return append(b, printable.JSON(text)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func (w *writer) integer(key string, n int64) {
	w.scalar(key, "int")
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) float(key string, f float64) {
	w.scalar(key, "float")
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		w.b = strconv.AppendFloat(w.b, f, 'f', 1, 64)
		return
	}
	w.b = strconv.AppendFloat(w.b, f, 'g', -1, 64)
}

func (w *writer) boolean(key string, v bool) {
	w.scalar(key, "bool")
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) null(key string) {
	w.scalar(key, "null")
	w.b = append(w.b, "null"...)
}

func (w *writer) texts(key string, list ...string) {
	w.array(key, func() {
		for _, s := range list {
			w.text("", s)
		}
	})
}

// number writes a number that may be unset: an object in the later form, and a plain
// number in that of 22.05.
func (w *writer) number(key string, n int64, set bool) {
	if !w.modern {
		w.integer(key, n)
		return
	}
	w.object(key, func() {
		w.boolean("set", set)
		w.boolean("infinite", false)
		w.integer("number", n)
	})
}

// count writes a number that is null in 22.05 if it is 0.
func (w *writer) count(key string, n int64) {
	if !w.modern && n == 0 {
		w.null(key)
		return
	}
	w.number(key, n, n != 0)
}

// limit writes a number; -1 means no limit.
func (w *writer) limit(key string, n int64) {
	switch {
	case !w.modern && n < 0:
		w.null(key)
	case n < 0:
		w.object(key, func() {
			w.boolean("set", false)
			w.boolean("infinite", true)
			w.integer("number", 0)
		})
	default:
		w.number(key, n, true)
	}
}
