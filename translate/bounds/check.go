package bounds

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Check returns an *Exceeded for the first field of now, a pointer to a struct, that
// is beyond its bound, or nil. old is nil or a pointer to the same type; fields that
// are equal there are not checked. path is the prefix of the field's name in the
// error.
func (r Rules) Check(path string, old, now any) error {
	var was reflect.Value
	if v := reflect.ValueOf(old); v.IsValid() && !v.IsNil() {
		was = v.Elem()
	}
	return r.check(path, was, reflect.ValueOf(now).Elem())
}

// check checks the fields of a struct. was is invalid if there is nothing to compare
// with.
func (r Rules) check(path string, was, now reflect.Value) error {
	if was.IsValid() && reflect.DeepEqual(was.Interface(), now.Interface()) {
		return nil
	}
	rules := r[now.Type()]
	for _, f := range Fields(now.Type()) {
		var old reflect.Value
		if was.IsValid() {
			old = was.FieldByIndex(f.Index)
		}
		err := r.checkField(join(path, f.Name), rules[f.Name], old, now.FieldByIndex(f.Index))
		if err != nil {
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

// checkField checks one field against its rule.
func (r Rules) checkField(path string, rule Rule, was, now reflect.Value) error {
	if rule.Unchecked {
		return nil
	}
	if was.IsValid() && reflect.DeepEqual(was.Interface(), now.Interface()) {
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
		return r.checkList(path, &rule, now)
	case reflect.Map:
		return rule.checkMap(path, now)
	default:
		return rule.checkScalar(path, now)
	}
}

func (r Rules) checkList(path string, rule *Rule, now reflect.Value) error {
	if now.Type().Elem().Kind() == reflect.Uint8 {
		return rule.checkLength(path, now.Len())
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
		} else if err := rule.checkScalar(at, e); err != nil {
			return err
		}
		if e.Kind() == reflect.String {
			total += e.Len() + 1
		}
		if rule.Unique {
			key := identity(e)
			if seen[key] {
				return rule.exceeded(at, "the same entry occurs twice")
			}
			seen[key] = true
		}
	}
	return rule.checkTotal(path, total)
}

// identity returns a comparable value that is equal for equal elements. Pointers in a
// struct are dereferenced.
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

func (r *Rule) checkMap(path string, now reflect.Value) error {
	if now.Len() > r.Items {
		return r.exceeded(path, "at most %d entries", r.Items)
	}
	total := 0
	for it := now.MapRange(); it.Next(); {
		key, value := it.Key().String(), it.Value()
		if len(key) > r.KeyBytes {
			return r.exceeded(path, "names of at most %d bytes", r.KeyBytes)
		}
		if err := r.checkScalar(path+"."+key, value); err != nil {
			return err
		}
		total += len(key) + 1
		if value.Kind() == reflect.String {
			total += value.Len() + 1
		}
	}
	return r.checkTotal(path, total)
}

func (r *Rule) checkTotal(path string, n int) error {
	if r.Total > 0 && n > r.Total {
		return r.exceeded(path, "at most %d bytes in all", r.Total)
	}
	return nil
}

func (r *Rule) checkScalar(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		return r.checkText(path, v.String())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return r.checkNumber(path, v.Int())
	case reflect.Uint64:
		return r.checkNumber(path, int64(min(v.Uint(), math.MaxInt64)))
	}
	return nil
}

func (r *Rule) checkText(path, s string) error {
	switch {
	case s == "" && r.Required:
		return r.exceeded(path, "may not be empty")
	case s != "" && len(r.OneOf) > 0 && !slices.Contains(r.OneOf, s):
		return r.exceeded(path, "one of %s", strings.Join(r.OneOf, ", "))
	case strings.ContainsRune(s, 0):
		return r.exceeded(path, "no NUL byte")
	}
	return r.checkLength(path, len(s))
}

func (r *Rule) checkLength(path string, n int) error {
	if n > r.Bytes {
		return r.exceeded(path, "at most %d bytes", r.Bytes)
	}
	return nil
}

func (r *Rule) checkNumber(path string, n int64) error {
	if n < r.Min || n > r.Max {
		return r.exceeded(path, "%d to %d", r.Min, r.Max)
	}
	return nil
}

func (r *Rule) exceeded(path, format string, args ...any) error {
	return &Exceeded{Field: path, Limit: fmt.Sprintf(format, args...), Text: r.Text}
}
