package bounds

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Check returns the first field of now (a pointer to a struct) that is beyond
// its bound, as an *Exceeded, or nil. old, if it is not nil, is a pointer to the
// same type, and what is equal there is not checked. path begins the field's name
// in the error; empty: the field's own name is the first.
func (r Rules) Check(path string, old, now any) error {
	var was reflect.Value
	if v := reflect.ValueOf(old); v.IsValid() && !v.IsNil() {
		was = v.Elem()
	}
	return r.check(path, was, reflect.ValueOf(now).Elem())
}

// check walks a struct. was is invalid where there is nothing to compare with.
func (r Rules) check(path string, was, now reflect.Value) error {
	if was.IsValid() && reflect.DeepEqual(was.Interface(), now.Interface()) {
		return nil
	}
	rules := r[now.Type()]
	for _, f := range Fields(now.Type()) {
		field, old := now.FieldByIndex(f.Index), reflect.Value{}
		if was.IsValid() {
			old = was.FieldByIndex(f.Index)
		}
		if err := r.field(join(path, f.Name), rules[f.Name], old, field); err != nil {
			return err
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// field checks one field by its rule.
func (r Rules) field(path string, rule Rule, was, now reflect.Value) error {
	if rule.Unchecked || was.IsValid() && reflect.DeepEqual(was.Interface(), now.Interface()) {
		return nil
	}
	if now.Kind() == reflect.Pointer {
		if now.IsNil() {
			return nil
		}
		now = now.Elem()
		if was.IsValid() {
			was = was.Elem() // invalid if it was nil
		}
	}
	switch now.Kind() {
	case reflect.Struct:
		return r.check(path, was, now)
	case reflect.Slice:
		return r.list(path, &rule, now)
	case reflect.Map:
		return rule.mapping(path, now)
	default:
		return rule.scalar(path, now)
	}
}

func (r Rules) list(path string, rule *Rule, now reflect.Value) error {
	if now.Type().Elem().Kind() == reflect.Uint8 {
		return rule.length(path, now.Len())
	}
	if now.Len() > rule.Items {
		return rule.exceeded(path, "at most %d entries", rule.Items)
	}
	seen, total := map[any]bool{}, 0
	for i := range now.Len() {
		e := now.Index(i)
		at := fmt.Sprintf("%s[%d]", path, i)
		if e.Kind() == reflect.Struct {
			if err := r.check(at, reflect.Value{}, e); err != nil {
				return err
			}
		} else if err := rule.scalar(at, e); err != nil {
			return err
		}
		if e.Kind() == reflect.String {
			total += e.Len() + 1
		}
		if rule.Unique {
			key := identity(e)
			if seen[key] {
				return rule.exceeded(at, "the same entry is there twice")
			}
			seen[key] = true
		}
	}
	return rule.total(path, total)
}

// identity returns a value that is equal for equal elements: pointers in a
// struct count by what they point to.
func identity(e reflect.Value) any {
	if e.Kind() != reflect.Struct {
		return e.Interface()
	}
	parts := make([]string, e.NumField())
	for i := range parts {
		f := e.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		parts[i] = fmt.Sprint(f.Interface())
	}
	return strings.Join(parts, "\x00")
}

func (r *Rule) mapping(path string, now reflect.Value) error {
	if now.Len() > r.Items {
		return r.exceeded(path, "at most %d entries", r.Items)
	}
	total := 0
	for it := now.MapRange(); it.Next(); {
		key, value := it.Key().String(), it.Value()
		if len(key) > r.KeyBytes {
			return r.exceeded(path, "names of at most %d bytes", r.KeyBytes)
		}
		if err := r.scalar(path+"."+key, value); err != nil {
			return err
		}
		if total += len(key) + 1; value.Kind() == reflect.String {
			total += value.Len() + 1
		}
	}
	return r.total(path, total)
}

func (r *Rule) total(path string, n int) error {
	if r.Total > 0 && n > r.Total {
		return r.exceeded(path, "at most %d bytes in all", r.Total)
	}
	return nil
}

func (r *Rule) scalar(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		return r.text(path, v.String())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return r.number(path, v.Int())
	case reflect.Uint64:
		return r.number(path, int64(min(v.Uint(), math.MaxInt64)))
	}
	return nil
}

func (r *Rule) text(path, s string) error {
	switch {
	case s == "" && r.Required:
		return r.exceeded(path, "may not be empty")
	case s != "" && len(r.OneOf) > 0 && !slices.Contains(r.OneOf, s):
		return r.exceeded(path, "one of %s", strings.Join(r.OneOf, ", "))
	case strings.ContainsRune(s, 0):
		return r.exceeded(path, "no NUL byte")
	}
	return r.length(path, len(s))
}

func (r *Rule) length(path string, n int) error {
	if n > r.Bytes {
		return r.exceeded(path, "at most %d bytes", r.Bytes)
	}
	return nil
}

func (r *Rule) number(path string, n int64) error {
	if n < r.Min || n > r.Max {
		return r.exceeded(path, "%d to %d", r.Min, r.Max)
	}
	return nil
}

func (r *Rule) exceeded(path, format string, args ...any) error {
	return &Exceeded{Field: path, Limit: fmt.Sprintf(format, args...), Text: r.Text}
}
