package bounds

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Field is a field of a struct in its JSON form.
type Field struct {
	Name  string
	Index []int // of reflect.Value.FieldByIndex: embedded structs count as their fields
	Type  reflect.Type
}

var fieldsOf sync.Map // reflect.Type to []Field

// Fields returns the fields of the struct type t that its JSON form has.
func Fields(t reflect.Type) []Field {
	if cached, ok := fieldsOf.Load(t); ok {
		return cached.([]Field) //nolint:forcetypeassert // the map holds nothing else
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

// Missing returns the gaps in the rules for T: fields of T, and of every struct type in
// it, that have no rule or a rule without a limit, and rules whose field does not exist.
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
	rules, names := m.rules[t], map[string]bool{}
	for _, f := range Fields(t) {
		names[f.Name] = true
		rule, hasRule := rules[f.Name]
		if rule.Unchecked {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if why := m.missingIn(kind, rule, hasRule); why != "" {
			m.out = append(m.out, fmt.Sprintf("%s.%s: %s", t, f.Name, why))
		}
	}
	for name := range rules {
		if !names[name] {
			m.out = append(m.out, fmt.Sprintf("%s.%s: a rule without a field", t, name))
		}
	}
}

// missingIn returns what the rule of a field of type t lacks; "": nothing.
func (m *missing) missingIn(t reflect.Type, r Rule, hasRule bool) string {
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
			return lackUnless(hasRule && r.Bytes > 0, "no length")
		case r.Items == 0:
			return "no number of entries"
		case t.Kind() == reflect.Map && r.KeyBytes == 0:
			return "no length of names"
		}
		return m.missingIn(e, r, hasRule)
	case reflect.String:
		return lackUnless(hasRule && r.Bytes > 0, "no length")
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return lackUnless(hasRule && r.Max > r.Min, "no range")
	}
	return "a kind of field that no rule bounds: " + t.String()
}

func lackUnless(ok bool, what string) string {
	if ok {
		return ""
	}
	return what
}
