package bounds

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Field is a field of a struct as JSON has it.
type Field struct {
	Name  string
	Index []int // of reflect.Value.FieldByIndex: embedded structs count as their fields
	Type  reflect.Type
}

var fieldsOf sync.Map // reflect.Type to []Field

// Fields returns the fields of the struct type t that JSON carries.
func Fields(t reflect.Type) []Field {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]Field) //nolint:forcetypeassert // nothing else is stored
	}
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				out = append(out, inner)
			}
		default:
			out = append(out, Field{Name: name, Index: []int{i}, Type: f.Type})
		}
	}
	fieldsOf.Store(t, out)
	return out
}

// Missing returns the fields of T, and of every struct type within it, that have
// no rule or a rule that bounds nothing, and the rules that no field has.
func Missing[T any](r Rules) []string {
	m := missing{rules: r, seen: map[reflect.Type]bool{}}
	m.walk(reflect.TypeFor[T]())
	return m.out
}

type missing struct {
	rules Rules
	seen  map[reflect.Type]bool
	out   []string
}

func (m *missing) walk(t reflect.Type) {
	if m.seen[t] {
		return
	}
	m.seen[t] = true
	rules, known := m.rules[t], map[string]bool{}
	for _, f := range Fields(t) {
		known[f.Name] = true
		rule, has := rules[f.Name]
		if rule.Unchecked {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if why := m.lacks(kind, rule, has); why != "" {
			m.out = append(m.out, fmt.Sprintf("%s.%s: %s", t, f.Name, why))
		}
	}
	for name := range rules {
		if !known[name] {
			m.out = append(m.out, fmt.Sprintf("%s.%s: a rule without a field", t, name))
		}
	}
}

// lacks says what the rule of a field of type t lacks; "": nothing.
func (m *missing) lacks(t reflect.Type, r Rule, has bool) string {
	switch t.Kind() {
	case reflect.Bool:
		return ""
	case reflect.Struct:
		m.walk(t)
		return ""
	case reflect.Slice, reflect.Map:
		e := t.Elem()
		switch {
		case e.Kind() == reflect.Uint8:
			return bounded(has && r.Bytes > 0, "no length")
		case r.Items == 0:
			return "no number of entries"
		case t.Kind() == reflect.Map && r.KeyBytes == 0:
			return "no length of names"
		}
		return m.lacks(e, r, has)
	case reflect.String:
		return bounded(has && r.Bytes > 0, "no length")
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return bounded(has && r.Max > r.Min, "no range")
	}
	return "a kind of field that no rule bounds: " + t.String()
}

func bounded(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}
