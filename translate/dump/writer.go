// Package dump writes rows of jobs, nodes, partitions and reservations as the
// listing commands' --json and --yaml do: in the shape of Slurm 22.05, and in
// that of the data parsers of later releases, where a number says whether it
// is set. It is pure.
package dump

import (
	"encoding/json"
	"math"
	"strconv"
)

// Syntax is what the text is written in.
type Syntax int

// The syntaxes.
const (
	JSON Syntax = iota
	YAML
)

// writer appends a tree to b as it is told: a key is empty in arrays.
type writer struct {
	b      []byte
	syntax Syntax
	modern bool // the shape of the later data parsers
	depth  int
	fresh  bool // nothing is in the innermost object or array yet
	dash   bool // YAML: an item of an array has just begun
}

func (w *writer) indent() {
	for range w.depth {
		w.b = append(w.b, "  "...)
	}
}

// key begins a member or an item.
func (w *writer) key(key string) {
	if w.syntax == YAML {
		w.yamlKey(key)
		return
	}
	if !w.fresh {
		w.b = append(w.b, ',')
	}
	w.fresh = false
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

func (w *writer) yamlKey(key string) {
	switch {
	case w.dash: // on the line of its dash
		w.dash = false
	case w.depth > 0 || len(w.b) > 0:
		if w.b[len(w.b)-1] != '\n' {
			w.b = append(w.b, '\n')
		}
		for range w.depth - 1 {
			w.b = append(w.b, "  "...)
		}
	}
	w.fresh = false
	if key == "" {
		w.b = append(w.b, "- "...)
		return
	}
	w.b = append(w.b, key...)
	w.b = append(w.b, ": "...)
}

// object writes an object with what members writes.
func (w *writer) object(key string, members func()) { w.group(key, '{', '}', members) }

// array writes an array with what items writes.
func (w *writer) array(key string, items func()) { w.group(key, '[', ']', items) }

func (w *writer) group(key string, open, end byte, inside func()) {
	if key != "" || w.depth > 0 || w.syntax == JSON {
		w.key(key)
	}
	start := len(w.b)
	w.depth++
	w.fresh = true
	if w.syntax == JSON {
		w.b = append(w.b, open)
	} else {
		w.dash = key == "" && w.depth > 1 && open == '{'
	}
	inside()
	w.depth--
	empty := w.fresh
	w.fresh, w.dash = false, false
	switch {
	case w.syntax == YAML && empty:
		w.b = append(w.b[:start], open, end)
	case w.syntax == YAML:
	default:
		if !empty {
			w.b = append(w.b, '\n')
			w.indent()
		}
		w.b = append(w.b, end)
	}
}

func (w *writer) text(key, s string) {
	w.key(key)
	w.b = appendText(w.b, s)
}

// appendText appends s as a JSON string, which YAML reads as well.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil { // strings cannot fail
				text = []byte(`""`)
			}
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func (w *writer) integer(key string, n int64) {
	w.key(key)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) float(key string, f float64) {
	w.key(key)
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		w.b = strconv.AppendFloat(w.b, f, 'f', 1, 64)
		return
	}
	w.b = strconv.AppendFloat(w.b, f, 'g', -1, 64)
}

func (w *writer) boolean(key string, v bool) {
	w.key(key)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) null(key string) {
	w.key(key)
	w.b = append(w.b, "null"...)
}

func (w *writer) texts(key string, list ...string) {
	w.array(key, func() {
		for _, s := range list {
			w.text("", s)
		}
	})
}

// number writes a number that may be unset: in the later shape as an object,
// in that of 22.05 plain.
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

// count is a number that 22.05 writes as null where it is 0.
func (w *writer) count(key string, n int64) {
	if !w.modern && n == 0 {
		w.null(key)
		return
	}
	w.number(key, n, n != 0)
}

// limit is a number of which -1 means that there is no limit.
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
