package job_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/job"
)

// TestBytesCountEveryText enlarges each text, list and map of a Job in turn and
// checks that Bytes grows by at least half as much as the JSON.
func TestBytesCountEveryText(t *testing.T) {
	walk(t, reflect.TypeFor[job.Job](), "", func(set func(*job.Job), path string) {
		var j job.Job
		before, text := j.Bytes(), marshal(t, &j)
		set(&j)
		grown, long := j.Bytes()-before, len(marshal(t, &j))-len(text)
		if grown < int64(long)/2 {
			t.Errorf("%s: JSON grows by %d bytes, Bytes by %d", path, long, grown)
		}
	})
}

func marshal(t *testing.T, j *job.Job) []byte {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// walk calls visit for each field that a user can enlarge.
func walk(t *testing.T, typ reflect.Type, path string, visit func(set func(*job.Job), path string)) {
	t.Helper()
	var descend func(typ reflect.Type, path string, at func(reflect.Value) reflect.Value)
	descend = func(typ reflect.Type, path string, at func(reflect.Value) reflect.Value) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Tag.Get("json") == "-" {
				continue
			}
			here := func(v reflect.Value) reflect.Value { return at(v).Field(i) }
			kind := f.Type
			if kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct {
				outer, elem := here, kind.Elem()
				here = func(v reflect.Value) reflect.Value {
					p := outer(v)
					if p.IsNil() {
						p.Set(reflect.New(elem))
					}
					return p.Elem()
				}
				kind = elem
			}
			name := path + "." + f.Name
			switch kind.Kind() {
			case reflect.Struct:
				descend(kind, name, here)
			case reflect.String, reflect.Slice, reflect.Map:
				visit(func(j *job.Job) { fill(t, here(reflect.ValueOf(j).Elem())) }, name)
			}
		}
	}
	descend(typ, path, func(v reflect.Value) reflect.Value { return v })
}

// fill sets v to a text of 1,000 bytes, or a list or map of 100 entries of 100
// bytes.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", 1000))
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), 100, 100)
		for i := range 100 {
			switch e := list.Index(i); e.Kind() {
			case reflect.String:
				e.SetString(strings.Repeat("x", 100))
			case reflect.Struct:
				for k := range e.NumField() {
					if f := e.Field(k); f.Kind() == reflect.String {
						f.SetString("abcdefgh")
					}
				}
			}
		}
		v.Set(list)
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		for i := range 100 {
			value := reflect.New(v.Type().Elem()).Elem()
			if value.Kind() == reflect.String {
				value.SetString(strings.Repeat("x", 100))
			}
			m.SetMapIndex(reflect.ValueOf(fmt.Sprintf("%0100d", i)), value)
		}
		v.Set(m)
	default:
		t.Fatal(v.Kind())
	}
}
